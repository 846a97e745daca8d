//! A server's process is started, killed, paused, started again.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock};

use rustix::process::{Pid, Signal, kill_process};

use crate::binaries::found;
use crate::folder::Folder;

/// The program and arguments that a server is started with.
#[derive(Debug)]
pub struct Launch {
    program: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    user: Option<String>,
}

impl Launch {
    /// A program without arguments.
    #[must_use]
    pub fn new(program: &Path) -> Self {
        Self {
            program: program.to_owned(),
            arguments: Vec::new(),
            variables: Vec::new(),
            user: None,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Adds a variable of the environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Runs as this user, where this process is root: some servers refuse to be.
    #[must_use]
    pub fn user(mut self, name: &str) -> Self {
        self.user = Some(name.to_owned());
        self
    }

    fn command(&self, folder: &Folder) -> Command {
        let mut command = self.wrapped();
        command
            .args(&self.arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(folder.path())
            .stdin(Stdio::null());
        command
    }

    /// Behind `setpriv`, where there is one: the kernel kills the server when its starter dies.
    fn wrapped(&self) -> Command {
        let Some(setpriv) = found("setpriv", &[]) else {
            return Command::new(&self.program);
        };
        let mut command = Command::new(setpriv);
        if let Some(user) = self.user.as_ref().filter(|_| is_root()) {
            command.args(["--reuid", user, "--regid", user, "--init-groups"]);
        }
        // Last of all, for a change of the user clears it.
        command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(&self.program);
        command
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A running server, with a folder of its own. Dropping it kills the server, and removes the
/// folder.
#[derive(Debug)]
pub struct Process {
    name: String,
    launch: Launch,
    child: Child,
    folder: Folder,
}

impl Process {
    /// Starts a server in a folder, where it also writes its output, to the file `output`. It may
    /// not be ready yet.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    #[must_use]
    pub fn start(name: &str, launch: Launch, folder: Folder) -> Self {
        let child = spawn(&launch, &folder);
        Self {
            name: name.to_owned(),
            launch,
            child,
            folder,
        }
    }

    /// The process's number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The folder that it runs in.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// True if it has not ended.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The output so far.
    #[must_use]
    pub fn output(&self) -> String {
        let bytes = std::fs::read(self.folder.path().join("output")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// `kill -9`, and waits for its end.
    pub fn kill(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Stops it where it is (SIGSTOP): its sockets stay open, and nobody answers.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on (SIGCONT).
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Asks it to end (SIGTERM).
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends a signal, if it has not ended.
    ///
    /// # Panics
    ///
    /// If the signal cannot be sent to a process that runs.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.id().cast_signed()).expect("a child has a number");
        match kill_process(pid, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => panic!("failed to signal {}: {error}", self.name),
        }
    }

    /// Starts it again as it was started, in the same folder; kills it first, if it runs.
    pub fn restart(&mut self) {
        self.kill();
        self.child = spawn(&self.launch, &self.folder);
    }

    /// Runs it with other arguments from the next [`restart`](Self::restart) on.
    pub fn relaunch_with(&mut self, launch: Launch) {
        self.launch = launch;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(launch: &Launch, folder: &Folder) -> Child {
    let output = File::options()
        .create(true)
        .append(true)
        .open(folder.path().join("output"))
        .expect("a file for the output");
    let mut command = launch.command(folder);
    command
        .stdout(output.try_clone().expect("a second handle"))
        .stderr(output);
    starter_spawns(command).expect("the server starts")
}

/// A command, and where its child goes.
type Order = (Command, Sender<std::io::Result<Child>>);

/// Starts a process from a thread that never ends: the kernel takes the end of the starting
/// *thread* for the starter's death, and a test's thread may end before those that share its
/// server.
fn starter_spawns(command: Command) -> std::io::Result<Child> {
    static STARTER: OnceLock<Mutex<Sender<Order>>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (orders, taken) = channel::<Order>();
        std::thread::spawn(move || {
            for (mut command, reply) in taken {
                // Whoever ordered it waits.
                let _ = reply.send(command.spawn());
            }
        });
        Mutex::new(orders)
    });
    let (reply, child) = channel();
    let orders = starter.lock().expect("nobody panics with it");
    orders.send((command, reply)).expect("the starter runs");
    drop(orders);
    child.recv().expect("the starter answers")
}

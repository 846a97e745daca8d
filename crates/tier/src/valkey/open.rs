//! The addresses of the servers, and the login to them.

use std::error::Error;
use std::fmt;

use super::tls::Tls;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo};

/// An engine could not be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// An address is none, or none was given.
    Address(String),
    /// An address asks for what is not supported: a Unix socket, a database other than 0 of a
    /// cluster, or TLS with a server that is not verified.
    Unsupported(String),
    /// TLS is not to be had: there are no certificates to trust, or the feature `tls` is off.
    Tls(String),
    /// The thread of the connections could not be started.
    Thread(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(why) => write!(f, "no address of a server: {why}"),
            Self::Unsupported(what) => write!(f, "{what} is not supported"),
            Self::Tls(why) => write!(f, "TLS is not to be had: {why}"),
            Self::Thread(why) => write!(f, "failed to start the connections' thread: {why}"),
        }
    }
}

impl Error for OpenError {}

/// A server's host and port.
pub(super) type Address = (String, u16);

/// User and password, the database that keeps the values, and TLS if it is asked for. Word of
/// changes comes of all databases.
#[derive(Clone, Default)]
pub(super) struct Login {
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) tls: Option<Tls>,
    database: i64,
}

impl Login {
    /// The login to a Sentinel, which has users of its own.
    pub(super) fn nobody(&self) -> Self {
        Self {
            tls: self.tls.clone(),
            ..Self::default()
        }
    }
}

/// The kind of deployment, and its addresses.
#[derive(Clone)]
pub(super) enum Deployment {
    One(Address),
    Cluster(Vec<Address>),
    Sentinel(Vec<Address>, String),
}

impl Deployment {
    /// The addresses that were given.
    pub(super) fn addresses(&self) -> &[Address] {
        match self {
            Self::One(address) => std::slice::from_ref(address),
            Self::Cluster(nodes) | Self::Sentinel(nodes, _) => nodes,
        }
    }
}

/// The servers, and how to log in to them.
#[derive(Clone)]
pub(super) struct Servers {
    pub(super) deployment: Deployment,
    pub(super) login: Login,
}

impl Servers {
    pub(super) fn one(url: &str) -> Result<Self, OpenError> {
        let (address, login) = parse(url)?;
        let deployment = Deployment::One(address);
        Ok(Self { deployment, login })
    }

    pub(super) fn cluster(urls: &[&str]) -> Result<Self, OpenError> {
        let (addresses, login) = parse_all(urls)?;
        if login.database != 0 {
            let what = format!("database {} of a cluster", login.database);
            return Err(OpenError::Unsupported(what));
        }
        let deployment = Deployment::Cluster(addresses);
        Ok(Self { deployment, login })
    }

    pub(super) fn sentinel(urls: &[&str], name: &str) -> Result<Self, OpenError> {
        let (addresses, login) = parse_all(urls)?;
        let deployment = Deployment::Sentinel(addresses, name.to_owned());
        Ok(Self { deployment, login })
    }

    /// The parameters of the data connections.
    pub(super) fn info(&self, (host, port): &Address) -> Result<ConnectionInfo, redis::RedisError> {
        let mut settings = RedisConnectionInfo::default().set_db(self.login.database);
        if let Some(user) = &self.login.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = &self.login.password {
            settings = settings.set_password(password);
        }
        let (host, port) = (host.clone(), *port);
        let address = match self.login.tls {
            None => ConnectionAddr::Tcp(host, port),
            Some(_) => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: false,
                tls_params: None,
            },
        };
        let info = address.into_connection_info()?;
        Ok(info.set_redis_settings(settings))
    }
}

/// All addresses, and the login that the first one names. Whether TLS is asked for must not differ:
/// a password could go out without it.
fn parse_all(urls: &[&str]) -> Result<(Vec<Address>, Login), OpenError> {
    let (first, others) = urls
        .split_first()
        .ok_or_else(|| OpenError::Address("there is none".into()))?;
    let (address, login) = parse(first)?;
    let mut addresses = vec![address];
    for url in others {
        let (address, other) = parse(url)?;
        if other.tls.is_some() != login.tls.is_some() {
            return Err(OpenError::Unsupported(
                "TLS with some of the servers".into(),
            ));
        }
        addresses.push(address);
    }
    Ok((addresses, login))
}

fn parse(url: &str) -> Result<(Address, Login), OpenError> {
    let info = url
        .into_connection_info()
        .map_err(|error| OpenError::Address(error.to_string()))?;
    let (address, tls) = match info.addr() {
        ConnectionAddr::Tcp(host, port) => ((host.clone(), *port), None),
        ConnectionAddr::TcpTls { insecure: true, .. } => {
            return Err(OpenError::Unsupported("TLS with anybody".into()));
        }
        ConnectionAddr::TcpTls { host, port, .. } => {
            let tls = Tls::of_system().map_err(OpenError::Tls)?;
            ((host.clone(), *port), Some(tls))
        }
        _ => return Err(OpenError::Unsupported("a Unix socket".into())),
    };
    let settings = info.redis_settings();
    let login = Login {
        user: settings.username().map(str::to_owned),
        password: settings.password().map(str::to_owned),
        tls,
        database: settings.db(),
    };
    Ok((address, login))
}

impl fmt::Debug for Servers {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.deployment {
            Deployment::One((host, port)) => write!(f, "{host}:{port}"),
            Deployment::Cluster(nodes) => write!(f, "cluster of {nodes:?}"),
            Deployment::Sentinel(nodes, name) => write!(f, "{name} under {nodes:?}"),
        }
    }
}

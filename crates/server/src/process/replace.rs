//! Replaces a file as a whole: after a crash there is the old one or the new one.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

/// Replaces a file by one with these bytes, and the old one's permissions. Nobody else may replace
/// it meanwhile.
pub(crate) fn replace_file(path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
    let path = path.as_ref();
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.tmp", std::process::id()));
    // Somebody with our number, as in a container, may have been ended while it wrote.
    let _ = std::fs::remove_file(&beside);
    let written = File::create_new(&beside).and_then(|mut file| {
        // Before there is anything to read in it.
        if let Ok(old) = path.metadata() {
            file.set_permissions(old.permissions())?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    });
    if let Err(why) = written {
        // The error that counts is the first one.
        let _ = std::fs::remove_file(&beside);
        return Err(why);
    }
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_a_process_with_the_same_number_has_left_is_in_nobodys_way() {
        let path = std::env::temp_dir().join(format!("tidewheel-left-{}", std::process::id()));
        let beside = format!("{}.{}.tmp", path.display(), std::process::id());
        std::fs::write(&beside, b"half").expect("a file");
        replace_file(&path, b"whole").expect("the new one");
        assert_eq!(std::fs::read(&path).expect("it is there"), b"whole");
        assert!(!Path::new(&beside).exists());
        std::fs::remove_file(&path).expect("it is there");
    }

    #[test]
    fn the_new_file_has_the_old_one_s_permissions() {
        let path = std::env::temp_dir().join(format!("tidewheel-replace-{}", std::process::id()));
        replace_file(&path, b"a").expect("a new file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("ours");
        replace_file(&path, b"b").expect("the next");
        let mode = path.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert_eq!(std::fs::read(&path).expect("it is there"), b"b");
        std::fs::remove_file(&path).expect("it is there");
    }
}

//! Finding and loading ONNX Runtime, once per process.
//!
//! The places, in order: the path the caller names, `ORT_DYLIB_PATH`, then `.runtime/onnxruntime/lib` upward from the
//! current folder and upward from the executable. A named path that does not hold is an error rather than a reason to
//! look further.
//!
//! OpenVINO comes in another build of ONNX Runtime, which lies in `.runtime/onnxruntime-openvino/lib`. A process loads one
//! of the two.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use ort::environment::Environment;
use ort::logging::LogLevel;

use crate::Result;
use crate::device::Device;
use crate::devices::Devices;
use crate::error::InferenceError;
use crate::telemetry;

/// Where `scripts/fetch-runtimes` lays out the library, relative to the repository or the installation.
const LAYOUT: &str = ".runtime/onnxruntime/lib";
/// The same for the build that has OpenVINO: `scripts/fetch-runtimes --openvino`.
const LAYOUT_OPENVINO: &str = ".runtime/onnxruntime-openvino/lib";
/// The variable that ONNX Runtime's own tools use for the same purpose.
const VARIABLE: &str = "ORT_DYLIB_PATH";

/// The loaded runtime. Never dropped: ONNX Runtime allows one environment per process.
static RUNTIME: OnceLock<Runtime> = OnceLock::new();
/// Held while loading, so that two threads do not both try.
static LOADING: Mutex<()> = Mutex::new(());

struct Runtime {
    info: RuntimeInfo,
    environment: Environment,
}

/// Which ONNX Runtime the process uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeInfo {
    /// The library that was loaded.
    pub path: PathBuf,
    /// What the library says about its build, version included.
    pub build: String,
}

/// Loads ONNX Runtime, from `runtime` (the library or the folder it is in) if given.
///
/// A second call does nothing if it means the same library and is an error if it names another. After a failure it may
/// be called again.
pub fn init(runtime: Option<&Path>) -> Result<()> {
    init_from(LAYOUT, runtime)
}

/// [`init`] for a process that computes on `devices`: unless somebody names a runtime, the one that has OpenVINO is looked
/// up for `openvino`, and the usual one for all others.
pub fn init_for(devices: &Devices, runtime: Option<&Path>) -> Result<()> {
    let layout = match devices.as_slice() {
        [Device::OpenVino] => LAYOUT_OPENVINO,
        _ => LAYOUT,
    };
    init_from(layout, runtime)
}

fn init_from(layout: &str, runtime: Option<&Path>) -> Result<()> {
    // The lock guards no data, so a thread that panicked while holding it left nothing half done.
    let _loading = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(loaded) = RUNTIME.get() {
        return match runtime.map(named_library).transpose()? {
            Some(wanted) if wanted != loaded.info.path => Err(InferenceError::OtherRuntime {
                loaded: loaded.info.path.clone(),
                wanted,
            }),
            _ => Ok(()),
        };
    }
    let variable = std::env::var_os(VARIABLE)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from);
    if !telemetry::is_forbidden() {
        return Err(InferenceError::Telemetry);
    }
    let path = locate(&Places {
        layout,
        named: runtime,
        variable: variable.as_deref(),
        current: std::env::current_dir().ok().as_deref(),
        executable: std::env::current_exe().ok().as_deref().and_then(Path::parent),
    })?;
    let loaded = load(path)?;
    tracing::debug!(path = %loaded.info.path.display(), build = loaded.info.build, "onnx runtime loaded");
    RUNTIME.get_or_init(|| loaded);
    Ok(())
}

/// Which runtime [`init`] has loaded.
pub fn runtime() -> Option<&'static RuntimeInfo> {
    RUNTIME.get().map(|runtime| &runtime.info)
}

/// The environment that sessions are made in.
pub(crate) fn environment() -> Result<&'static Environment> {
    RUNTIME
        .get()
        .map(|runtime| &runtime.environment)
        .ok_or(InferenceError::NotInitialised)
}

fn load(path: PathBuf) -> Result<Runtime> {
    let failed = |message: String| InferenceError::RuntimeLoad {
        path: path.clone(),
        message,
    };
    let builder = ort::init_from(&path).map_err(|error| failed(error.to_string()))?;
    let environment = builder
        .with_name("tengen")
        .with_telemetry(false)
        .build()
        .map_err(|error| failed(error.to_string()))?;
    // The environment starts at the most verbose level and would format every message only to see it dropped.
    environment.set_log_level(LogLevel::Warning);
    let build = ort::info().to_owned();
    Ok(Runtime {
        info: RuntimeInfo { path, build },
        environment,
    })
}

/// The places to look at.
struct Places<'a> {
    /// What is looked for upward from the two folders.
    layout: &'a str,
    named: Option<&'a Path>,
    variable: Option<&'a Path>,
    current: Option<&'a Path>,
    executable: Option<&'a Path>,
}

/// The library's absolute path.
fn locate(places: &Places<'_>) -> Result<PathBuf> {
    if let Some(named) = places.named.or(places.variable) {
        return named_library(named);
    }
    let layout = places.layout;
    let mut tried = vec![format!("{VARIABLE} (not set)")];
    for (start, what) in [
        (places.current, "the current folder"),
        (places.executable, "the executable"),
    ] {
        let Some(start) = start else {
            continue;
        };
        if let Some(found) = start.ancestors().find_map(|folder| library_in(&folder.join(layout))) {
            return Ok(absolute(&found));
        }
        tried.push(format!("{layout} upward from {what} {}", start.display()));
    }
    Err(InferenceError::RuntimeNotFound { tried })
}

/// The library that a person named, directly or by its folder.
fn named_library(named: &Path) -> Result<PathBuf> {
    let found = if named.is_file() {
        Some(named.to_path_buf())
    } else {
        library_in(named).or_else(|| library_in(&named.join("lib")))
    };
    let missing = || InferenceError::RuntimeNotFound {
        tried: vec![named.display().to_string()],
    };
    found.map(|path| absolute(&path)).ok_or_else(missing)
}

/// The library in `folder`: `libonnxruntime.so`, with or without a version behind it. The last by name, so that the
/// choice does not depend on the folder's order.
fn library_in(folder: &Path) -> Option<PathBuf> {
    let stem = format!(
        "{}onnxruntime{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    );
    let is_library = |path: &PathBuf| {
        path.is_file()
            && path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(&stem))
    };
    std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .filter(is_library)
        .max()
}

/// Absolute and without links, because the loader searches relative paths elsewhere and two names may be one file.
fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOWHERE: Places<'static> = Places {
        layout: LAYOUT,
        named: None,
        variable: None,
        current: None,
        executable: None,
    };

    /// A folder with the layout of `scripts/fetch-runtimes`, empty libraries, and a folder three levels down.
    fn installation() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let root = tempfile::tempdir().expect("a temporary folder");
        let lib = root.path().join(LAYOUT);
        std::fs::create_dir_all(&lib).expect("folders");
        for name in [
            "libonnxruntime.so.1.30.0",
            "libonnxruntime_providers_shared.so",
            "notes.txt",
        ] {
            std::fs::File::create(lib.join(name)).expect("a file");
        }
        let deep = root.path().join("a/b/c");
        std::fs::create_dir_all(&deep).expect("folders");
        let library = absolute(&lib.join("libonnxruntime.so.1.30.0"));
        (root, deep, library)
    }

    #[test]
    fn the_layout_is_found_upward_from_the_current_folder_and_the_executable() {
        let (_root, deep, library) = installation();
        assert_eq!(
            locate(&Places {
                current: Some(&deep),
                ..NOWHERE
            }),
            Ok(library.clone())
        );
        assert_eq!(
            locate(&Places {
                executable: Some(&deep),
                ..NOWHERE
            }),
            Ok(library)
        );
    }

    #[test]
    fn the_build_with_openvino_lies_beside_the_usual_one_and_is_never_taken_for_it() {
        let (root, deep, usual) = installation();
        let places = Places {
            layout: LAYOUT_OPENVINO,
            current: Some(&deep),
            ..NOWHERE
        };
        let error = locate(&places).expect_err("only the usual one is there").to_string();
        assert!(
            error.contains(LAYOUT_OPENVINO) && error.contains("--openvino"),
            "{error}"
        );

        let lib = root.path().join(LAYOUT_OPENVINO);
        std::fs::create_dir_all(&lib).expect("folders");
        let library = lib.join("libonnxruntime.so.1.24.1");
        std::fs::File::create(&library).expect("a file");
        assert_eq!(locate(&places), Ok(absolute(&library)));
        assert_eq!(
            locate(&Places {
                layout: LAYOUT,
                ..places
            }),
            Ok(usual)
        );
    }

    #[test]
    fn a_named_path_comes_before_the_variable_and_both_before_the_layout() {
        let (_one, deep, _) = installation();
        let (two, _, second) = installation();
        let (three, _, third) = installation();
        let variable = two.path().join(LAYOUT);
        let named = three.path().join(".runtime/onnxruntime");
        let places = Places {
            variable: Some(&variable),
            current: Some(&deep),
            ..NOWHERE
        };
        assert_eq!(locate(&places), Ok(second.clone()));
        assert_eq!(
            locate(&Places {
                named: Some(&named),
                ..places
            }),
            Ok(third)
        );
        assert_eq!(
            locate(&Places {
                named: Some(&second),
                ..NOWHERE
            }),
            Ok(second)
        );
    }

    #[test]
    fn a_named_path_that_does_not_hold_is_an_error() {
        let (root, deep, _) = installation();
        let named = root.path().join("nothing");
        let error = locate(&Places {
            named: Some(&named),
            current: Some(&deep),
            ..NOWHERE
        });
        assert_eq!(
            error,
            Err(InferenceError::RuntimeNotFound {
                tried: vec![named.display().to_string()]
            })
        );
    }

    #[test]
    fn the_error_names_every_place_and_the_script() {
        let empty = tempfile::tempdir().expect("a temporary folder");
        let places = Places {
            current: Some(empty.path()),
            executable: Some(empty.path()),
            ..NOWHERE
        };
        let text = locate(&places).expect_err("nothing is there").to_string();
        for part in [
            "ORT_DYLIB_PATH",
            "the current folder",
            "the executable",
            "scripts/fetch-runtimes",
            LAYOUT,
        ] {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
    }
}

//! What a GPU does, as NVIDIA's management library (NVML) tells: how busy it is, and how much of its memory is in use.
//!
//! The library belongs to the driver. It is opened when a process begins to compute on a GPU, and on no other machine.
//! NVML lists the machine's GPUs by their PCI addresses and does not follow `CUDA_VISIBLE_DEVICES`, so the GPU that CUDA
//! calls 0 has to be looked for in that list.
//!
//! A driver may hang, and whoever asks it with it: that is [`GpuGauge`]'s thread, and no other.

#[cfg(test)]
pub(crate) mod fake;
mod gauge;

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;

pub(crate) use gauge::GpuGauge;

/// The variable that says which GPUs CUDA shows to a process, and in which order.
const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";
/// How NVML's and CUDA's names of whole GPUs begin.
const UUID_PREFIX: &str = "GPU-";

/// A GPU that can be asked.
#[derive(Debug)]
struct Gpu {
    nvml: Nvml,
    uuid: String,
}

/// What a GPU told; `None` is what its driver does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct GpuUse {
    /// Share of the last moments in which it computed, in [0, 1], whoever for.
    pub(crate) busy: Option<f32>,
    /// Memory in use, bytes, whoever holds it.
    pub(crate) memory_bytes: Option<u64>,
}

impl Gpu {
    /// The GPU that this process has from CUDA as number `cuda`. `None` where NVML cannot be opened or has no such GPU;
    /// the log says which.
    fn open(cuda: u32) -> Option<Gpu> {
        let visible = std::env::var_os(VISIBLE).map(|list| list.to_string_lossy().into_owned());
        match Gpu::find(cuda, visible.as_deref()) {
            Ok(Some(gpu)) => {
                tracing::debug!(cuda, uuid = gpu.uuid, "the use of the gpu is measured");
                Some(gpu)
            }
            Ok(None) => {
                tracing::debug!(
                    cuda,
                    visible,
                    "the use of the gpu is not measured: NVML has no such gpu"
                );
                None
            }
            Err(error) => {
                tracing::debug!(cuda, %error, "the use of the gpu is not measured");
                None
            }
        }
    }

    fn find(cuda: u32, visible: Option<&str>) -> Result<Option<Gpu>, NvmlError> {
        let nvml = Nvml::init()?;
        // Those that this process may not open are none of CUDA's either.
        let uuids: Vec<String> = (0..nvml.device_count()?)
            .filter_map(|index| nvml.device_by_index(index).and_then(|device| device.uuid()).ok())
            .collect();
        let uuid = uuid_of(cuda, visible, &uuids).map(str::to_owned);
        Ok(uuid.map(|uuid| Gpu { nvml, uuid }))
    }

    /// Asks it.
    fn read(&self) -> GpuUse {
        let Ok(device) = self.nvml.device_by_uuid(self.uuid.as_str()) else {
            return GpuUse::default();
        };
        GpuUse {
            busy: device
                .utilization_rates()
                .ok()
                .map(|percent| percent.gpu.min(100) as f32 / 100.0),
            memory_bytes: device.memory_info().ok().map(|memory| memory.used),
        }
    }
}

/// The UUID of the GPU that CUDA calls `cuda`, out of `uuids`, those of NVML's list in its order. `visible` is
/// `CUDA_VISIBLE_DEVICES`: indices and beginnings of UUIDs, of which CUDA leaves out the first that names no GPU, and all
/// behind it. `None`: CUDA has no such GPU, or the entry names a slice of one (MIG), whose use NVML does not tell.
///
/// An index is taken as one of NVML's list. CUDA's own list begins with the fastest GPU unless
/// `CUDA_DEVICE_ORDER=PCI_BUS_ID`, so where a machine's GPUs differ in kind, an index may mean another one.
fn uuid_of<'a>(cuda: u32, visible: Option<&str>, uuids: &'a [String]) -> Option<&'a str> {
    let Some(visible) = visible else {
        return uuids.get(cuda as usize).map(String::as_str);
    };
    visible
        .split(',')
        .map_while(|entry| named(entry.trim(), uuids))
        .nth(cuda as usize)
}

/// The one that an entry of `CUDA_VISIBLE_DEVICES` names.
fn named<'a>(entry: &str, uuids: &'a [String]) -> Option<&'a str> {
    if !entry.starts_with(UUID_PREFIX) {
        let index: usize = entry.parse().ok()?;
        return uuids.get(index).map(String::as_str);
    }
    let mut matching = uuids.iter().filter(|uuid| uuid.starts_with(entry));
    let found = matching.next()?;
    matching.next().is_none().then_some(found.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whom CUDA's numbers from 0 on mean on a machine with three GPUs, by NVML's index.
    fn check(visible: Option<&str>, expected: &[usize]) {
        let uuids = ["GPU-8a51c2", "GPU-8a97e0", "GPU-c04f11"].map(str::to_owned);
        let found: Vec<&str> = (0..4).map_while(|cuda| uuid_of(cuda, visible, &uuids)).collect();
        let expected: Vec<&str> = expected.iter().map(|&index| uuids[index].as_str()).collect();
        assert_eq!(found, expected, "{visible:?}");
        assert_eq!(uuid_of(4, visible, &uuids), None);
    }

    #[test]
    fn without_the_variable_the_numbers_are_those_of_nvml() {
        check(None, &[0, 1, 2]);
    }

    #[test]
    fn indices_choose_and_order() {
        check(Some("2"), &[2]);
        check(Some("2,0"), &[2, 0]);
        check(Some(" 1 , 2 "), &[1, 2]);
    }

    #[test]
    fn uuids_choose_and_order_and_may_be_cut_short_while_they_mean_one_gpu() {
        check(Some("GPU-c04f11,GPU-8a51c2"), &[2, 0]);
        check(Some("GPU-c,1"), &[2, 1]);
        check(Some("GPU-8a9"), &[1]);
        check(Some("GPU-8a"), &[]);
    }

    #[test]
    fn the_first_entry_that_names_no_gpu_ends_the_list() {
        check(Some(""), &[]);
        check(Some("-1"), &[]);
        check(Some("NoDevFiles"), &[]);
        check(Some("1,3,0"), &[1]);
        check(Some("0,GPU-ff,1"), &[0]);
        check(Some("0,-1,1"), &[0]);
        check(Some("MIG-8a51c2"), &[]);
    }

    #[test]
    fn a_machine_without_gpus_has_none_whatever_the_variable_says() {
        for visible in [None, Some("0"), Some("GPU-8a51c2"), Some("")] {
            assert_eq!(uuid_of(0, visible, &[]), None);
        }
    }

    /// Holds on a machine with GPUs, where each is found and asked, and on one without, where nothing is made up.
    #[test]
    fn what_nvml_has_is_found_and_nothing_else() {
        let Ok(nvml) = Nvml::init() else {
            assert!(Gpu::find(0, None).is_err());
            assert!(Gpu::open(0).is_none());
            return;
        };
        let devices: Vec<_> = (0..nvml.device_count().unwrap())
            .filter_map(|index| nvml.device_by_index(index).ok())
            .collect();
        for (cuda, device) in (0..).zip(&devices) {
            let gpu = Gpu::find(cuda, None).unwrap().expect("NVML lists it");
            assert_eq!(gpu.uuid, device.uuid().unwrap());
            let told = gpu.read();
            assert_eq!(told.busy.is_some(), device.utilization_rates().is_ok());
            assert!(told.busy.is_none_or(|busy| (0.0..=1.0).contains(&busy)), "{told:?}");
            let memory = device.memory_info().ok();
            assert_eq!(told.memory_bytes.is_some(), memory.is_some());
            let total = memory.map_or(0, |memory| memory.total);
            assert!(told.memory_bytes.is_none_or(|bytes| bytes <= total), "{told:?}");
        }
        let beyond = u32::try_from(devices.len()).unwrap();
        assert!(Gpu::find(beyond, None).unwrap().is_none());
    }
}

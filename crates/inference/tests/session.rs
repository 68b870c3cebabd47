//! Sessions over the real ONNX Runtime: shapes, batching, refusals.

mod common;

use common::{columns, config, lively_weights, model, options, positions, session, shapes};
use tengen_inference::{Device, InferenceError, Outputs, Session, SessionOptions, Signature, softmax};
use tengen_network::{Shape, random_weights};

fn run(session: &mut Session, planes: &[u8], n: usize) -> Outputs {
    let mut outputs = Outputs::default();
    session.run(planes, n, &mut outputs).expect("the batch runs");
    outputs
}

fn load(model: &[u8], options: &SessionOptions) -> Result<Session, InferenceError> {
    tengen_inference::init(None).expect("ONNX Runtime is laid out");
    Session::load(model, options)
}

#[test]
fn outputs_have_the_shapes_of_the_contract_for_every_batch_size() {
    for shape in shapes() {
        let mut session = session(&model(&shape, &random_weights(&shape, 1)), 6);
        assert_eq!(session.signature(), Signature::from(&shape));
        assert_eq!((session.provider(), session.cuda()), ("CPUExecutionProvider", None));
        for n in 0..20 {
            let outputs = run(&mut session, &positions(&shape, n, 7), n);
            assert_eq!(outputs.policy.len(), n * shape.actions(), "{}", shape.describe());
            assert_eq!(outputs.wdl.len(), n * 3, "{}", shape.describe());
        }
    }
}

#[test]
fn a_batch_gives_what_its_positions_give_alone() {
    for shape in shapes() {
        let mut session = session(&model(&shape, &lively_weights(&shape, 2)), 8);
        // 21 positions: two full batches and one padded from 5 to 8.
        let planes = positions(&shape, 21, 3);
        let batch = run(&mut session, &planes, 21);
        for (index, one) in planes.chunks(shape.planes_len()).enumerate() {
            let alone = run(&mut session, one, 1);
            let (policy, wdl) = batch.position(index);
            let pairs = policy.iter().zip(&alone.policy).chain(wdl.iter().zip(&alone.wdl));
            for (together, alone) in pairs {
                assert!(
                    (together - alone).abs() < 1e-4,
                    "{}: {together} and {alone}",
                    shape.describe()
                );
            }
        }
    }
}

#[test]
fn the_random_network_is_near_uniform_and_undecided() {
    let deep = columns(&config(20, 32));
    for shape in shapes().into_iter().chain([deep]) {
        for seed in 0..4 {
            let mut session = session(&model(&shape, &random_weights(&shape, seed)), 16);
            // Binary planes, as games have them: the bytes up to 255 of `positions` are for parity alone.
            let planes: Vec<u8> = positions(&shape, 16, seed)
                .into_iter()
                .map(|byte| byte.min(1))
                .collect();
            let outputs = run(&mut session, &planes, 16);
            for index in 0..16 {
                let (policy, wdl) = outputs.position(index);
                for share in softmax(policy) {
                    let ratio = share * shape.actions() as f32;
                    assert!(
                        (0.7..1.4).contains(&ratio),
                        "{}: {ratio} times its share",
                        shape.describe()
                    );
                }
                let wdl = softmax(&wdl);
                assert!((wdl[0] - wdl[2]).abs() < 0.1, "{}: {wdl:?}", shape.describe());
            }
        }
    }
}

#[test]
fn two_seeds_are_two_networks() {
    let shape = columns(&config(2, 8));
    let planes = positions(&shape, 1, 1);
    let mut outputs = (1..3).map(|seed| {
        run(
            &mut session(&model(&shape, &random_weights(&shape, seed)), 1),
            &planes,
            1,
        )
    });
    assert_ne!(outputs.next(), outputs.next());
}

#[test]
fn a_session_moves_to_another_thread() {
    let shape = columns(&config(1, 4));
    let mut session = session(&model(&shape, &random_weights(&shape, 1)), 4);
    let planes = positions(&shape, 3, 1);
    let here = run(&mut session, &planes, 3);
    let there = std::thread::spawn(move || run(&mut session, &planes, 3))
        .join()
        .expect("the thread ends");
    assert_eq!(here, there);
}

#[test]
fn damaged_bytes_are_an_error() {
    let shape = columns(&config(1, 4));
    let good = model(&shape, &random_weights(&shape, 1));
    for bytes in [&good[..0], &good[..good.len() / 2], &[0xff; 64], b"not a model"] {
        let error = load(bytes, &options(4)).expect_err("no model");
        assert!(matches!(error, InferenceError::Load(_)), "{error}");
    }
    // A changed byte may still be a model (most bytes are weights); it must never be a crash.
    for at in (0..good.len()).step_by(good.len() / 97) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x55;
        if let Ok(mut session) = load(&bytes, &options(4)) {
            let planes = vec![1; 3 * session.planes_len()];
            let _ = session.run(&planes, 3, &mut Outputs::default());
        }
    }
}

#[test]
fn a_model_of_other_sizes_is_refused_with_both() {
    let shape = columns(&config(1, 4));
    let session = session(&model(&shape, &random_weights(&shape, 1)), 4);
    assert_eq!(session.check(Signature::from(&shape)), Ok(()));
    let other = Signature {
        planes: [3, 6, 8],
        actions: 8,
    };
    let error = session.check(other).expect_err("another board");
    assert_eq!(
        error.to_string(),
        "the model has planes 3x6x7 and 7 actions, and the game has planes 3x6x8 and 8 actions"
    );
}

#[test]
fn planes_of_another_length_are_refused() {
    let shape = columns(&config(1, 4));
    let mut session = session(&model(&shape, &random_weights(&shape, 1)), 4);
    let error = session.run(&[0; 100], 2, &mut Outputs::default());
    assert_eq!(
        error,
        Err(InferenceError::PlanesLen {
            n: 2,
            len: 100,
            expected: 2 * 3 * 6 * 7
        })
    );
}

#[test]
fn an_output_that_is_not_finite_is_an_error() {
    let shape = columns(&config(1, 4));
    let mut weights = random_weights(&shape, 1);
    // Finite weights whose sums are not.
    for name in ["value.hidden.bias", "value.out.weight"] {
        weights.get_mut(name).expect("it is there").data_mut().fill(3e38);
    }
    let mut session = session(&model(&shape, &weights), 4);
    let error = session
        .run(&positions(&shape, 2, 1), 2, &mut Outputs::default())
        .expect_err("infinite logits");
    let at = InferenceError::NotFinite {
        output: "wdl",
        position: 0,
        index: 0,
        value: f32::INFINITY,
    };
    assert_eq!(error, at);
}

#[test]
fn a_model_that_breaks_the_contract_is_refused() {
    // The same bytes with one name changed to another of its length: still a model, but not ours.
    let shape = columns(&config(1, 4));
    let good = model(&shape, &random_weights(&shape, 1));
    for (name, other) in [("planes", "plains"), ("policy", "polity"), ("wdl", "ldw")] {
        let bytes = replace(&good, name.as_bytes(), other.as_bytes());
        let error = load(&bytes, &options(4)).expect_err("a foreign model");
        assert!(matches!(error, InferenceError::Contract { .. }), "{name}: {error}");
    }
}

/// Replaces every occurrence.
fn replace(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for at in 0..bytes.len() - from.len() {
        if bytes[at..].starts_with(from) {
            bytes[at..at + from.len()].copy_from_slice(to);
        }
    }
    bytes
}

#[test]
fn options_of_zero_are_refused() {
    let shape = columns(&config(1, 4));
    let model = model(&shape, &random_weights(&shape, 1));
    let error = load(
        &model,
        &SessionOptions {
            batch_max: 0,
            ..options(4)
        },
    )
    .expect_err("no batch");
    assert_eq!(
        error,
        InferenceError::Option {
            option: "batch_max",
            value: 0
        }
    );
    let error = load(
        &model,
        &SessionOptions {
            intra_threads: 0,
            ..options(4)
        },
    )
    .expect_err("no thread");
    assert_eq!(
        error,
        InferenceError::Option {
            option: "intra_threads",
            value: 0
        }
    );
}

#[test]
fn a_named_gpu_that_is_not_there_is_an_error_and_auto_uses_the_cpu() {
    let shape = columns(&config(1, 4));
    let model = model(&shape, &random_weights(&shape, 1));
    for absent in [Device::Cuda(999), Device::TensorRt(999)] {
        let error = load(
            &model,
            &SessionOptions {
                device: absent,
                ..options(4)
            },
        )
        .expect_err("no such gpu");
        assert!(
            matches!(&error, InferenceError::Device { device, .. } if *device == absent),
            "{error}"
        );
    }
    if cfg!(not(feature = "cuda")) {
        let session = load(
            &model,
            &SessionOptions {
                device: Device::Auto,
                ..options(4)
            },
        )
        .expect("a cpu");
        assert_eq!((session.provider(), session.cuda()), ("CPUExecutionProvider", None));
    }
}

#[test]
fn openvino_in_the_usual_runtime_is_an_error_that_names_the_way_out() {
    let shape = columns(&config(1, 4));
    let openvino = SessionOptions {
        device: Device::OpenVino,
        ..options(4)
    };
    let error = load(&model(&shape, &random_weights(&shape, 1)), &openvino).expect_err("no OpenVINO");
    assert!(
        matches!(&error, InferenceError::Device { device, .. } if *device == Device::OpenVino),
        "{error}"
    );
    let text = error.to_string();
    for part in [
        "libonnxruntime.so",
        "OpenVINOExecutionProvider",
        "scripts/fetch-runtimes --openvino",
    ] {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
}

#[test]
fn the_runtime_is_loaded_once() {
    tengen_inference::init(None).expect("ONNX Runtime is laid out");
    let info = tengen_inference::runtime().expect("it is loaded");
    assert_eq!(tengen_inference::init(Some(&info.path)), Ok(()));
    assert_eq!(tengen_inference::init(info.path.parent()), Ok(()));

    let folder = tempfile::tempdir().expect("a temporary folder");
    let copy = folder.path().join("libonnxruntime.so");
    std::fs::File::create(&copy).expect("a file");
    let error = tengen_inference::init(Some(&copy)).expect_err("a second runtime");
    assert!(matches!(error, InferenceError::OtherRuntime { .. }), "{error}");
}

#[test]
fn more_threads_compute_the_same_network() {
    let shape: Shape = columns(&config(2, 16));
    let model = model(&shape, &lively_weights(&shape, 4));
    let planes = positions(&shape, 8, 1);
    let one = run(&mut session(&model, 8), &planes, 8);
    let mut two = load(
        &model,
        &SessionOptions {
            intra_threads: 2,
            ..options(8)
        },
    )
    .expect("it loads");
    let two = run(&mut two, &planes, 8);
    for (one, two) in one.policy.iter().zip(&two.policy) {
        assert!((one - two).abs() < 1e-4, "{one} and {two}");
    }
}

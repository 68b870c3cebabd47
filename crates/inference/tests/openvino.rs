//! OpenVINO beside the CPU provider. It comes in an ONNX Runtime of its own and a process loads one, so these tests have a
//! binary of their own: `make openvino` fetches that runtime and runs them.

mod common;

use common::reduced::{fp16, int8};
use common::{config, lively_weights, model, options, positions, session, shapes};
use tengen_games::{AnyGame, registry};
use tengen_inference::{Device, Fidelity, Outputs, Session, SessionOptions};
use tengen_network::Shape;

/// Greatest difference of a logit that another order of addition may make in fp32. Measured: 2e-6, and 7e-3 for products in
/// bf16 on a CPU that has them.
const FP32_DIFFERENCE_MAX: f32 = 1e-4;
/// Greatest difference of two providers that compute the same file in int8, as a [`Fidelity`]: activations may be rounded
/// the other way. Measured: 0.0002 nats and 0.006.
const INT8_KL_MAX: f64 = 2e-3;
const INT8_VALUE_ERROR_MAX: f64 = 0.02;

/// A session on OpenVINO, with the runtime that has it.
fn on_openvino(model: &[u8], batch_max: usize) -> Session {
    tengen_inference::init_for(&Device::OpenVino.into(), None).expect("scripts/fetch-runtimes --openvino has run");
    let openvino = SessionOptions {
        device: Device::OpenVino,
        ..options(batch_max)
    };
    let session = Session::load(model, &openvino).expect("OpenVINO takes the whole graph");
    assert_eq!(
        (session.provider(), session.cuda()),
        ("OpenVINOExecutionProvider", None)
    );
    session
}

/// What OpenVINO and the CPU provider of the same runtime answer.
fn answers(model: &[u8], shape: &Shape, planes: &[u8]) -> [Outputs; 2] {
    let openvino = on_openvino(model, 8);
    let usual = session(model, 8);
    assert_eq!(usual.provider(), "CPUExecutionProvider");
    [openvino, usual].map(|mut session| {
        let mut outputs = Outputs::default();
        let n = planes.len() / shape.planes_len();
        session.run(planes, n, &mut outputs).expect("the batch runs");
        outputs
    })
}

/// Binary planes, as most games have them: two full batches and one padded from 5 to 8.
fn boards(shape: &Shape) -> Vec<u8> {
    positions(shape, 21, 3).into_iter().map(|byte| byte.min(1)).collect()
}

#[test]
#[ignore = "needs scripts/fetch-runtimes --openvino"]
fn fp32_networks_of_every_shape_answer_as_on_the_cpu_provider() {
    for (seed, shape) in shapes().into_iter().enumerate() {
        let model = model(&shape, &lively_weights(&shape, seed as u64));
        let [openvino, usual] = answers(&model, &shape, &boards(&shape));
        let pairs = openvino
            .policy
            .iter()
            .zip(&usual.policy)
            .chain(openvino.wdl.iter().zip(&usual.wdl));
        for (openvino, usual) in pairs {
            assert!(
                (openvino - usual).abs() <= FP32_DIFFERENCE_MAX,
                "{}: {openvino} and {usual}",
                shape.describe()
            );
        }
    }
}

#[test]
#[ignore = "needs scripts/fetch-runtimes --openvino"]
fn int8_networks_of_every_shape_answer_as_on_the_cpu_provider() {
    for (seed, shape) in shapes().into_iter().enumerate() {
        let (weights, planes) = (lively_weights(&shape, seed as u64), boards(&shape));
        let [openvino, usual] = answers(&int8(&shape, &weights, &planes), &shape, &planes);
        let apart = Fidelity::of(&usual, &openvino);
        assert!(
            apart.policy_kl <= INT8_KL_MAX && apart.value_error <= INT8_VALUE_ERROR_MAX,
            "{}: {apart}",
            shape.describe()
        );
    }
}

#[test]
#[ignore = "needs scripts/fetch-runtimes --openvino"]
fn networks_of_every_registered_game_are_taken_whole_in_every_precision() {
    for name in registry::names() {
        let game = AnyGame::parse(name).expect("a registered name");
        let shape = Shape::new(game.spec(), &config(1, 16)).expect("the game has a network");
        let (weights, planes) = (lively_weights(&shape, 5), vec![1; shape.planes_len()]);
        for file in [
            model(&shape, &weights),
            int8(&shape, &weights, &planes),
            fp16(&shape, &weights),
        ] {
            let mut outputs = Outputs::default();
            on_openvino(&file, 1).run(&planes, 1, &mut outputs).expect("it runs");
            assert_eq!((outputs.policy.len(), outputs.len()), (shape.actions(), 1), "{name}");
        }
    }
}

//! The model file: bytes, metadata and weights there and back, and what is refused.

use tengen_games::{ActionBlock, AnyGame, Fingerprint};
use tengen_network::{
    Activation, ActivationRange, ActivationRanges, Config, FP32_MODEL, Metadata, MetadataError, Precision, RangeError,
    ReadError, Shape, Tensor, Weights, WeightsError, WriteError, model_id, random_weights, read_metadata, read_weights,
    write_onnx, write_onnx_fp16, write_onnx_int8,
};

fn shape() -> Shape {
    Shape {
        blocks: 2,
        channels: 8,
        value_channels: 4,
        value_hidden: 6,
        planes: 3,
        rows: 5,
        cols: 4,
        plane_scales: vec![1.0, 0.5, 0.1],
        action_blocks: vec![
            ActionBlock::Cells { planes: 2 },
            ActionBlock::Columns,
            ActionBlock::Global { count: 3 },
        ],
    }
}

fn metadata() -> Metadata {
    Metadata {
        run: "first-light".to_owned(),
        game: "caro5?size=9".to_owned(),
        rules_fingerprint: Fingerprint([0x1f; 32]),
        feature_fingerprint: Fingerprint([0xe2; 32]),
        iteration: 12,
        generation: 3,
        step: 45_678,
        parent: Some([0xab; 32]),
        precision: Precision::Fp32,
        created: "2026-01-02T03:04:05Z".to_owned(),
        extra: [("learning_rate".to_owned(), "0.02".to_owned())].into(),
        ..Metadata::of_shape(&shape())
    }
}

fn file() -> Vec<u8> {
    write_onnx(&shape(), &random_weights(&shape(), 7), &metadata()).expect("the weights fit")
}

/// Id of [`file`].
const GOLDEN: &str = "5cf188e8675c230cbc1b6836b72308471f8dd4aceccd2805fe6ae99e0cce3886";

#[test]
fn the_same_network_has_the_same_bytes_on_every_machine() {
    let file = file();
    assert_eq!(file, self::file());
    // Changes only when the file format, the graph or the random network is changed on purpose.
    assert_eq!(hex::encode(model_id(&file)), GOLDEN);
}

fn ranges() -> ActivationRanges {
    let mut ranges = ActivationRanges::new();
    for activation in shape().activations() {
        let min = if activation.is_signed() { -2.0 } else { 0.0 };
        ranges.include(activation, ActivationRange { min, max: 4.0 });
    }
    ranges
}

/// The file of the same network in another precision, with what it says of itself.
fn reduced(precision: Precision) -> (Vec<u8>, Metadata) {
    let (weights, metadata) = (
        random_weights(&shape(), 7),
        metadata().in_precision(precision, model_id(&file())),
    );
    let file = match precision {
        Precision::Int8 => write_onnx_int8(&shape(), &weights, &ranges(), &metadata),
        Precision::Fp16 => write_onnx_fp16(&shape(), &weights, &metadata),
        other => panic!("{other} is not reduced"),
    };
    (file.expect("weights and ranges fit"), metadata)
}

#[test]
fn a_file_in_a_reduced_precision_says_which_network_it_is_and_has_no_weights_to_read() {
    for precision in [Precision::Int8, Precision::Fp16] {
        let (file, metadata) = reduced(precision);
        assert_eq!(file, reduced(precision).0);
        let read = read_metadata(&file).expect("metadata");
        assert_eq!(read, metadata);
        assert_eq!((read.precision, read.step), (precision, 45_678));
        assert_eq!(read.extra[FP32_MODEL], GOLDEN);
        let error = read_weights(&file).expect_err("no floats of training");
        assert_eq!(error, ReadError::Precision { precision });
        assert!(error.to_string().contains(precision.as_str()), "{error}");
    }
}

#[test]
fn a_file_is_written_in_the_precision_that_its_metadata_states() {
    let weights = random_weights(&shape(), 7);
    let int8 = metadata().in_precision(Precision::Int8, [1; 32]);
    for (written, refused) in [
        (Precision::Fp32, write_onnx(&shape(), &weights, &int8)),
        (Precision::Fp16, write_onnx_fp16(&shape(), &weights, &int8)),
    ] {
        let stated = Precision::Int8;
        assert_eq!(refused, Err(WriteError::Precision { stated, written }));
    }
    let refused = write_onnx_int8(&shape(), &weights, &ranges(), &metadata()).expect_err("metadata of fp32");
    assert_eq!(
        refused.to_string(),
        "the metadata says precision fp32, and the file is in int8"
    );
}

#[test]
fn an_int8_file_wants_a_range_of_every_activation() {
    let metadata = metadata().in_precision(Precision::Int8, [1; 32]);
    let write = |ranges: &ActivationRanges| write_onnx_int8(&shape(), &random_weights(&shape(), 7), ranges, &metadata);
    assert_eq!(
        write(&ActivationRanges::new()),
        Err(WriteError::Ranges(RangeError::Missing {
            activation: Activation::Input
        }))
    );
    let mut infinite = ranges();
    let seen = ActivationRange {
        min: 0.0,
        max: f32::INFINITY,
    };
    infinite.include(Activation::Block(1), seen);
    let error = write(&infinite).expect_err("no steps of such a range");
    assert_eq!(
        error.to_string(),
        "activation blocks.1 has the range 0 to inf, which is not finite"
    );
}

#[test]
fn metadata_reads_back() {
    assert_eq!(read_metadata(&file()), Ok(metadata()));
    let random = Metadata {
        parent: None,
        extra: Default::default(),
        ..metadata()
    };
    let file = write_onnx(&shape(), &random_weights(&shape(), 7), &random).expect("the weights fit");
    assert_eq!(read_metadata(&file), Ok(random));
}

#[test]
fn metadata_passes_through_json() {
    let json = metadata().to_json();
    assert_eq!(Metadata::from_json(&json), Ok(metadata()));
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value["step"], "45678");
    assert_eq!(value["heads"], "conv policy cells:2, columns, global:3; value 4>6");
    assert!(matches!(Metadata::from_json("[1]"), Err(MetadataError::Json(_))));
}

#[test]
fn properties_that_are_no_metadata_are_refused_by_key() {
    let with = |key: &str, value: Option<&str>| {
        let mut properties = metadata().properties();
        properties.retain(|(other, _)| other != key);
        properties.extend(value.map(|value| (key.to_owned(), value.to_owned())));
        Metadata::from_properties(properties)
    };
    assert_eq!(with("run", None), Err(MetadataError::Missing { key: "run" }));
    for (key, value) in [
        ("step", "-1"),
        ("iteration", "4294967296"),
        ("rules_fingerprint", "abc"),
        ("parent", "00"),
        ("precision", "fp1"),
    ] {
        let error = with(key, Some(value)).expect_err(value);
        assert!(
            matches!(&error, MetadataError::Invalid { key: at, .. } if *at == key),
            "{error}"
        );
    }
    let twice = [metadata().properties(), metadata().properties()].concat();
    assert!(matches!(
        Metadata::from_properties(twice),
        Err(MetadataError::Twice { .. })
    ));
}

#[test]
fn metadata_of_another_network_is_not_written() {
    let write = |metadata: &Metadata| write_onnx(&shape(), &random_weights(&shape(), 7), metadata);
    let error = write(&Metadata {
        blocks: 3,
        ..metadata()
    })
    .expect_err("another depth");
    assert_eq!(
        error.to_string(),
        r#"the metadata says blocks "3", and the network has "2""#
    );
    let extra = [("step".to_owned(), "1".to_owned())].into();
    let error = write(&Metadata { extra, ..metadata() }).expect_err("a key with a field");
    assert_eq!(
        error,
        WriteError::Metadata(MetadataError::Twice { key: "step".to_owned() })
    );
}

#[test]
fn weights_read_back_bit_for_bit() {
    let weights = random_weights(&shape(), 7);
    let read = read_weights(&file()).expect("a model");
    assert_eq!(read, weights);
    assert_eq!(read.check(&shape()), Ok(()));
}

#[test]
fn damaged_bytes_are_an_error_and_never_a_panic() {
    let file = file();
    for bytes in [&file[..file.len() / 2], &[0xff; 40], b"not a model"] {
        assert!(matches!(read_metadata(bytes), Err(ReadError::Decode(_))));
        assert!(matches!(read_weights(bytes), Err(ReadError::Decode(_))));
    }
    assert_eq!(
        read_metadata(b""),
        Err(ReadError::Metadata(MetadataError::Missing { key: "run" }))
    );
    assert_eq!(read_weights(b""), Err(ReadError::NoGraph));
    for at in 0..file.len() {
        let mut bytes = file.clone();
        bytes[at] ^= 0xa5;
        if let Ok(weights) = read_weights(&bytes) {
            let _ = weights.check(&shape());
        }
    }
}

#[test]
fn weights_that_are_not_those_of_the_shape_are_not_written() {
    let refused = |change: &dyn Fn(&mut Weights)| {
        let mut weights = random_weights(&shape(), 7);
        change(&mut weights);
        match write_onnx(&shape(), &weights, &metadata()) {
            Err(WriteError::Weights(error)) => error,
            other => panic!("{other:?}"),
        }
    };
    let name = || "stem.bias".to_owned();
    assert_eq!(
        refused(&|weights| weights.insert("stem.gamma", Tensor::zeros(vec![8]))),
        WeightsError::Unknown {
            name: "stem.gamma".to_owned()
        }
    );
    assert_eq!(
        refused(&|weights| weights.insert(name(), Tensor::zeros(vec![7]))),
        WeightsError::Shape {
            name: name(),
            expected: vec![8],
            actual: vec![7]
        }
    );
    let infinite = refused(&|weights| weights.get_mut("stem.bias").expect("it is there").data_mut()[5] = f32::INFINITY);
    assert_eq!(
        infinite,
        WeightsError::NotFinite {
            name: name(),
            index: 5,
            value: f32::INFINITY
        }
    );

    let mut deeper = shape();
    deeper.blocks = 3;
    let missing = random_weights(&shape(), 7).check(&deeper);
    assert_eq!(
        missing,
        Err(WeightsError::Missing {
            name: "blocks.2.conv1.bias".to_owned()
        })
    );
    assert!(matches!(
        Tensor::new(vec![2, 3], vec![0.0; 5]),
        Err(WeightsError::Length { len: 5, .. })
    ));
    assert!(matches!(
        Tensor::new(vec![usize::MAX, 2], vec![]),
        Err(WeightsError::Length { len: 0, .. })
    ));
}

#[test]
fn a_seed_decides_the_network_and_another_head_changes_no_other_tensor() {
    let one = random_weights(&shape(), 1);
    assert_eq!(one, random_weights(&shape(), 1));
    assert_ne!(one, random_weights(&shape(), 2));

    let mut other = shape();
    other.action_blocks.push(ActionBlock::Columns);
    let other = random_weights(&other, 1);
    for (name, tensor) in one.iter() {
        assert_eq!(other.get(name), Some(tensor), "{name}");
    }
}

#[test]
fn weights_of_one_board_size_are_weights_of_every_other() {
    let shape_of = |game: &str| {
        let config = Config {
            blocks: 1,
            channels: 8,
            ..Config::default()
        };
        let game = AnyGame::parse(game).unwrap_or_else(|error| panic!("{game}: {error}"));
        Shape::new(game.spec(), &config).expect("a network")
    };
    // Heads of cells and of decisions, cells and a swap, points and a pass, stages, and the cells of a triangle.
    for (small, large) in [
        ("caro5?size=9", "caro5?size=15"),
        ("hex?size=5", "hex?size=11"),
        ("go?size=9", "go?size=19"),
        ("amazons?size=6", "amazons?size=10"),
        ("black-hole?rows=5", "black-hole?rows=9"),
    ] {
        let (from, to) = (shape_of(small), shape_of(large));
        assert!(from.actions() < to.actions(), "{small} and {large}");
        let file = write_onnx(&from, &random_weights(&from, 7), &Metadata::of_shape(&from)).expect(small);
        let weights = read_weights(&file).expect(small);
        assert_eq!(weights.check(&to), Ok(()), "{small} to {large}");
        let carried = write_onnx(&to, &weights, &Metadata::of_shape(&to)).expect(large);
        assert_eq!(read_weights(&carried), Ok(weights), "{small} to {large}");
    }

    // Another choice of actions is another head, on a board of any size.
    let without_swap2 = shape_of("caro5?opening=none");
    let weights = random_weights(&shape_of("caro5?size=9"), 7);
    assert_eq!(
        weights.check(&without_swap2),
        Err(WeightsError::Unknown {
            name: "policy.1.bias".to_owned()
        })
    );
}

//! Messages of the coordinator as JSON for scripts: names as in the `.proto` files, every field there, bytes in
//! hexadecimal, enum values without their prefix and in lower case, what is not set as `null`.

use std::sync::LazyLock;

use prost::Message;
use prost_reflect::{
    DescriptorPool, DynamicMessage, EnumDescriptor, FieldDescriptor, Kind, MapKey, MessageDescriptor, ReflectMessage,
    Value as Part,
};
use serde_json::{Map, Value};

/// Our services' own description.
static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(tengen_proto::DESCRIPTOR_SET).expect("the descriptors are those this build was made from")
});

/// A message of the type `name`, for example `RunStatus`.
pub(crate) fn of<M: Message>(message: &M, name: &str) -> anyhow::Result<Value> {
    let descriptor: MessageDescriptor = POOL
        .get_message_by_name(&format!("tengen.v1.{name}"))
        .ok_or_else(|| anyhow::anyhow!("there is no message {name}"))?;
    let dynamic = DynamicMessage::decode(descriptor, &message.encode_to_vec()[..])?;
    Ok(object(&dynamic))
}

fn object(message: &DynamicMessage) -> Value {
    let descriptor = message.descriptor();
    let fields = descriptor.fields().map(|field| {
        let value = match field.supports_presence() && !message.has_field(&field) {
            true => Value::Null,
            false => value(&field, &field.kind(), &message.get_field(&field)),
        };
        (field.name().to_owned(), value)
    });
    Value::Object(fields.collect())
}

fn value(field: &FieldDescriptor, kind: &Kind, part: &Part) -> Value {
    match part {
        Part::Bool(value) => (*value).into(),
        Part::I32(value) => (*value).into(),
        Part::I64(value) => (*value).into(),
        Part::U32(value) => (*value).into(),
        Part::U64(value) => (*value).into(),
        Part::F32(value) => shortest(*value),
        Part::F64(value) => (*value).into(),
        Part::String(value) => value.as_str().into(),
        Part::Bytes(value) => hex::encode(value).into(),
        Part::EnumNumber(number) => match kind {
            Kind::Enum(descriptor) => enum_value(descriptor, *number),
            _ => (*number).into(),
        },
        Part::Message(message) => object(message),
        Part::List(parts) => parts.iter().map(|part| value(field, kind, part)).collect(),
        Part::Map(parts) => map(field, kind, parts),
    }
}

fn map(field: &FieldDescriptor, kind: &Kind, parts: &std::collections::HashMap<MapKey, Part>) -> Value {
    let kind = match kind {
        Kind::Message(entry) => entry.map_entry_value_field().kind(),
        other => other.clone(),
    };
    let entries = parts.iter().map(|(key, part)| {
        let key = match key {
            MapKey::String(key) => key.clone(),
            MapKey::Bool(key) => key.to_string(),
            MapKey::I32(key) => key.to_string(),
            MapKey::I64(key) => key.to_string(),
            MapKey::U32(key) => key.to_string(),
            MapKey::U64(key) => key.to_string(),
        };
        (key, value(field, &kind, part))
    });
    Value::Object(entries.collect::<Map<_, _>>())
}

/// A small float as people wrote it, `0.55` and not `0.550000011920929`.
pub(crate) fn shortest(value: f32) -> Value {
    value.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// `promoted` for `GATE_STATE_PROMOTED`.
fn enum_value(descriptor: &EnumDescriptor, number: i32) -> Value {
    let Some(value) = descriptor.get_value(number) else {
        return number.into();
    };
    let mut prefix = String::new();
    for letter in descriptor.name().chars() {
        if letter.is_uppercase() && !prefix.is_empty() {
            prefix.push('_');
        }
        prefix.push(letter.to_ascii_uppercase());
    }
    let name = value.name();
    let short = name.strip_prefix(&format!("{prefix}_")).unwrap_or(name);
    short.to_lowercase().into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tengen_proto::v1::{Gate, GateState, RunStatus};

    use super::*;

    #[test]
    fn every_field_is_there_and_reads_as_people_write_it() {
        let status = RunStatus {
            run_id: "small".to_owned(),
            games: 1 << 60,
            gate: Some(Gate {
                candidate_id: vec![0xab, 0xcd],
                threshold: 0.55,
                state: GateState::Promoted.into(),
                ..Gate::default()
            }),
            rejected: [("illegal-action".to_owned(), 2)].into(),
            ..RunStatus::default()
        };
        let json = of(&status, "RunStatus").unwrap();
        assert_eq!(json["run_id"], "small");
        assert_eq!(json["games"], json!(1_u64 << 60));
        assert_eq!(json["gate"]["candidate_id"], "abcd");
        assert_eq!(json["gate"]["threshold"], json!(0.55));
        assert_eq!(json["gate"]["state"], "promoted");
        assert_eq!(json["rejected"], json!({ "illegal-action": 2 }));
        assert_eq!((&json["learner"], &json["actors"]), (&Value::Null, &json!([])));
        assert_eq!(json["window_turnover_minutes"], Value::Null);
        assert_eq!(json["generation"], 0);
    }
}

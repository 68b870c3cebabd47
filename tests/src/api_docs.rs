//! `docs/api.md`, made from the `.proto` files and their comments: every service, message and enum.

use std::collections::BTreeMap;
use std::fmt::Write;

use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    ServiceDescriptorProto,
};

/// Numbers of fields in the descriptors' own messages, of which a comment's path is made.
const FILE_MESSAGES: i32 = 4;
const FILE_ENUMS: i32 = 5;
const FILE_SERVICES: i32 = 6;
const MESSAGE_FIELDS: i32 = 2;
const MESSAGE_ONEOFS: i32 = 8;
const ENUM_VALUES: i32 = 2;
const SERVICE_METHODS: i32 = 2;

const HEAD: &str = "\
# The API

Made from the files in [proto/tengen/v1](../proto/tengen/v1) by `cargo run -p tengen-system-tests --example api_docs`; a test
fails when this page is not what that prints. [watching.md](watching.md) shows it in use, from Python and from a shell.

**Lists are pages**: `page_size` of 0 means 50, the greatest is 1000, and `next_page_token` of a page is the `page_token` of the
next; empty at the end. **Watches** begin with the full state. **Tokens** go into the header `authorization: Bearer TOKEN`;
[security.md](security.md) says which role may call what. **Refusals** are gRPC statuses with `google.rpc.ErrorInfo` (domain
`tengen`, a stable reason such as `NO_SUCH_MODEL`), `BadRequest` or `PreconditionFailure` with the field or the subject, and
`RetryInfo` where another try may pass. **Deadlines** are the caller's; the server gives a call `limits.answer_seconds`
(300) to its first answer.
Fields are never renumbered.
";

/// The whole page.
pub fn page() -> String {
    let set = FileDescriptorSet::decode(tengen_proto::DESCRIPTOR_SET).expect("the descriptors of this build");
    let files: Vec<File> = set
        .file
        .iter()
        .filter(|file| file.package() == "tengen.v1")
        .map(File::new)
        .collect();
    let mut page = HEAD.to_owned();
    for file in &files {
        let services = file.proto.service.iter().enumerate();
        services.for_each(|(index, service)| file.service(&mut page, index as i32, service));
    }
    for file in &files {
        let _ = writeln!(page, "\n## {}\n\n{}", file.proto.name(), file.about());
        let messages = file.proto.message_type.iter().enumerate();
        messages.for_each(|(index, message)| file.message(&mut page, index as i32, message));
        let enums = file.proto.enum_type.iter().enumerate();
        enums.for_each(|(index, values)| file.values(&mut page, index as i32, values));
    }
    page
}

struct File<'a> {
    proto: &'a FileDescriptorProto,
    comments: BTreeMap<&'a [i32], &'a str>,
}

impl<'a> File<'a> {
    fn new(proto: &'a FileDescriptorProto) -> File<'a> {
        let locations = proto.source_code_info.iter().flat_map(|info| &info.location);
        let comments = locations.map(|location| (&location.path[..], location.leading_comments()));
        File {
            proto,
            comments: comments.filter(|(_, comment)| !comment.is_empty()).collect(),
        }
    }

    /// The comment at a path, on one line and safe in a table.
    fn comment(&self, path: &[i32]) -> String {
        let text = self.comments.get(path).copied().unwrap_or_default();
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ").replace('|', "\\|")
    }

    /// What the file's first line says.
    fn about(&self) -> String {
        // The comment before `syntax`, whose field number is 12.
        self.comment(&[12])
    }

    fn service(&self, page: &mut String, index: i32, service: &ServiceDescriptorProto) {
        let about = self.comment(&[FILE_SERVICES, index]);
        let _ = writeln!(
            page,
            "\n## {}\n\n{about}\n\n| call | request | answer | |\n|---|---|---|---|",
            service.name()
        );
        for (place, method) in service.method.iter().enumerate() {
            let about = self.comment(&[FILE_SERVICES, index, SERVICE_METHODS, place as i32]);
            let side = |name: &str, streams: bool| format!("{}{}", if streams { "stream " } else { "" }, link(name));
            let _ = writeln!(
                page,
                "| `{}` | {} | {} | {about} |",
                method.name(),
                side(method.input_type(), method.client_streaming()),
                side(method.output_type(), method.server_streaming()),
            );
        }
    }

    fn message(&self, page: &mut String, index: i32, message: &DescriptorProto) {
        let path = [FILE_MESSAGES, index];
        let _ = writeln!(page, "\n### {}\n\n{}", message.name(), self.comment(&path));
        for (place, oneof) in message.oneof_decl.iter().enumerate() {
            // An optional field is a group of one that has no comment.
            let about = self.comment(&[FILE_MESSAGES, index, MESSAGE_ONEOFS, place as i32]);
            if !about.is_empty() {
                let _ = writeln!(page, "\n`{}`: {about}", oneof.name());
            }
        }
        if message.field.is_empty() {
            return;
        }
        *page += "\n| # | field | type | |\n|---|---|---|---|\n";
        for (place, field) in message.field.iter().enumerate() {
            let about = self.comment(&[FILE_MESSAGES, index, MESSAGE_FIELDS, place as i32]);
            let kind = kind(message, field);
            let _ = writeln!(page, "| {} | `{}` | {kind} | {about} |", field.number(), field.name());
        }
    }

    fn values(&self, page: &mut String, index: i32, values: &EnumDescriptorProto) {
        let about = self.comment(&[FILE_ENUMS, index]);
        let _ = writeln!(
            page,
            "\n### {}\n\n{about}\n\n| # | value | |\n|---|---|---|",
            values.name()
        );
        for (place, value) in values.value.iter().enumerate() {
            let about = self.comment(&[FILE_ENUMS, index, ENUM_VALUES, place as i32]);
            let _ = writeln!(page, "| {} | `{}` | {about} |", value.number(), value.name());
        }
    }
}

/// A field's type in words.
fn kind(message: &DescriptorProto, field: &FieldDescriptorProto) -> String {
    let entry = message
        .nested_type
        .iter()
        .find(|nested| field.type_name().ends_with(&format!(".{}", nested.name())));
    if let Some([key, value]) = entry.map(|entry| &entry.field[..]) {
        return format!("map of {} by {}", one(value), one(key));
    }
    let one = one(field);
    match field.label() {
        Label::Repeated => format!("repeated {one}"),
        _ if field.proto3_optional() => format!("optional {one}"),
        _ => one,
    }
}

fn one(field: &FieldDescriptorProto) -> String {
    match field.r#type() {
        Type::Message | Type::Enum => link(field.type_name()),
        other => other.as_str_name().trim_start_matches("TYPE_").to_lowercase(),
    }
}

/// `[Gate](#gate)` for `.tengen.v1.Gate`.
fn link(type_name: &str) -> String {
    let name = type_name.rsplit('.').next().unwrap_or(type_name);
    format!("[{name}](#{})", name.to_lowercase())
}

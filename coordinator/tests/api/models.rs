//! Networks: published by the one learner, downloaded from any offset.

use tengen_proto::v1;
use tonic::Code;
use tonic_types::StatusExt;

use crate::rig::{Actor, Learner, NONE, Rig, TIC_TAC_TOE};

async fn run_with_iteration() -> Rig {
    let rig = Rig::start(&format!("{TIC_TAC_TOE}{NONE}")).await;
    Actor::new(&rig, "actor-1").await.deliver(4).await;
    rig
}

#[tokio::test]
async fn a_download_goes_on_from_any_offset_and_equals_the_file() {
    let rig = Rig::start(&TIC_TAC_TOE.replace("channels = 4", "channels = 300")).await;
    let model = rig.model("champion").await;
    assert!(model.size_bytes > 2 << 20, "{} bytes make one chunk", model.size_bytes);
    let whole = rig.download(&model, 0).await;
    assert_eq!(whole.len() as u64, model.size_bytes);
    assert_eq!(tengen_network::model_id(&whole).to_vec(), model.model_id);
    let half = whole.len() / 2 + 1;
    assert_eq!(rig.download(&model, half as u64).await, whole[half..]);
    assert!(rig.download(&model, model.size_bytes).await.is_empty());
    let beyond = v1::DownloadModelRequest {
        model_id: model.model_id,
        offset: model.size_bytes + 1,
    };
    let refused = rig.models().await.download_model(beyond).await.expect_err("a refusal");
    assert_eq!(refused.code(), Code::OutOfRange);
    rig.stop().await;
}

#[tokio::test]
async fn a_later_learner_fences_an_earlier_one_also_after_a_restart() {
    let rig = run_with_iteration().await;
    let mut first = Learner::new(&rig).await;
    let mut second = Learner::new(&rig).await;
    assert!(second.welcome.fence > first.welcome.fence);
    for refused in [first.report().await.map(drop), first.publish(1).await.map(drop)] {
        let refused = refused.expect_err("a refusal");
        assert_eq!(
            refused
                .get_error_details()
                .error_info()
                .map(|info| info.reason.as_str()),
            Some("FENCED")
        );
    }
    // Nothing is left of the refused publication.
    assert_eq!(std::fs::read_dir(rig.path("models")).expect("a folder").count(), 1);
    let published = second.publish(1).await.expect("a model");
    assert_eq!(
        second.publish(1).await.expect("the same again").model_id,
        published.model_id
    );
    assert_eq!(rig.count("SELECT count(*) FROM models"), 2);
    let (mut twin, bytes) = second.network(1);
    twin.parent_id = published.model_id;
    let known = second.publish_bytes(twin, bytes).await.expect("known by its bytes");
    assert!(known.parent_id.is_empty());

    let fence = second.welcome.fence;
    let rig = rig.restart(&format!("{TIC_TAC_TOE}{NONE}")).await;
    assert!(Learner::new(&rig).await.welcome.fence > fence);
    rig.stop().await;
}

#[tokio::test]
async fn what_is_no_wanted_network_of_this_run_is_refused() {
    let rig = run_with_iteration().await;
    let mut learner = Learner::new(&rig).await;
    let early = learner.publish(2).await.expect_err("iteration 2 is still being played");
    assert!(early.message().contains("1 iterations have ended"), "{early}");

    let (model, mut bytes) = learner.network(1);
    bytes[100] ^= 1;
    let damaged = learner
        .publish_bytes(model.clone(), bytes)
        .await
        .expect_err("a refusal");
    assert_eq!(damaged.code(), Code::InvalidArgument);
    assert!(damaged.message().contains("hash to"), "{damaged}");

    let (_, bytes) = learner.network(1);
    let short = learner
        .publish_bytes(model.clone(), bytes[..500].to_vec())
        .await
        .expect_err("a refusal");
    assert!(short.message().contains("were announced"), "{short}");

    let mut other = Learner::new(&rig).await;
    other.welcome.run_toml = other.welcome.run_toml.replace("channels = 4", "channels = 8");
    let shape = other.publish(1).await.expect_err("a refusal");
    assert_eq!(shape.code(), Code::FailedPrecondition);

    let (mut probed, bytes) = other.network(1);
    probed.probes[0].wdl.pop();
    other
        .publish_bytes(probed, bytes)
        .await
        .expect_err("probes that do not fit");
    assert_eq!(rig.count("SELECT count(*) FROM models"), 1);
    rig.stop().await;
}

#[tokio::test]
async fn models_are_listed_newest_first_in_pages_and_found_by_prefix() {
    let rig = run_with_iteration().await;
    Learner::new(&rig).await.publish(1).await.expect("a model");
    let mut client = rig.models().await;
    let mut request = v1::ListModelsRequest {
        page_size: 1,
        page_token: String::new(),
    };
    let mut iterations = Vec::new();
    loop {
        let page = client.list_models(request.clone()).await.expect("a page").into_inner();
        iterations.extend(page.models.iter().map(|model| model.iteration));
        assert!(page.models.iter().all(|model| model.probes.is_empty()));
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    assert_eq!(iterations, [1, 0]);

    let champion = rig.model("champion").await;
    let digits: String = champion
        .model_id
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(rig.model(&digits).await.model_id, champion.model_id);
    let get = |name: &str| v1::GetModelRequest { name: name.to_owned() };
    assert_eq!(
        client.get_model(get("gen:9")).await.expect_err("none").code(),
        Code::NotFound
    );
    assert_eq!(
        client.get_model(get("best")).await.expect_err("no name").code(),
        Code::InvalidArgument
    );
    rig.stop().await;
}

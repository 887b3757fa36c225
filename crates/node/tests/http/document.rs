//! The OpenAPI document says what there is.

use serde_json::{Value, json};

use crate::alone;
use crate::client::ask;

fn operations(document: &Value) -> Vec<(String, String, Value)> {
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            all.push((path.clone(), method.to_uppercase(), operation.clone()));
        }
    }
    all
}

#[tokio::test]
async fn every_operation_of_the_document_is_there_and_says_how_it_is_refused() {
    let (_node, at) = alone().await;
    let document = ask(at, "GET", "/openapi.json", None).await.with(200).json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"), "{document}");
    let all = operations(&document);
    let listed: Vec<String> =
        all.iter().map(|(path, method, _)| format!("{method} {path}")).collect();
    let expected = [
        "POST /v1/acquire",
        "GET /v1/holds/{id}",
        "DELETE /v1/holds/{id}",
        "POST /v1/holds/{id}/renew",
        "GET /v1/locks",
        "POST /v1/check",
        "GET /v1/anatomy",
        "POST /v1/force-release",
        "GET /v1/changes",
        "GET /v1/git/repositories",
        "GET /v1/status",
        "GET /v1/links",
        "GET /v1/live",
        "GET /v1/rates",
        "GET /v1/times",
        "GET /v1/alerts",
        "GET /v1/me",
        "GET /healthz",
        "GET /readyz",
        "GET /metrics",
    ];
    for operation in expected {
        assert!(listed.iter().any(|it| it == operation), "{operation} is not in {listed:?}");
    }
    assert_eq!(listed.len(), expected.len(), "{listed:?}");
    for (path, method, operation) in all {
        let what = format!("{method} {path}");
        assert!(!operation["summary"].as_str().unwrap().is_empty(), "{what}");
        for status in ["400", "401", "403", "421", "503"] {
            let content = &operation["responses"][status]["content"];
            let schema = &content["application/problem+json"]["schema"]["$ref"];
            assert_eq!(schema, "#/components/schemas/Problem", "{what}: {status}");
        }
        if !["/v1/changes", "/v1/live"].contains(&path.as_str()) {
            let path = path.replace("{id}", &"0".repeat(32));
            let status = ask(at, &method, &path, None).await.status;
            assert!(![404, 405].contains(&status), "{what}: {status}");
            let documented = &operation["responses"][status.to_string()];
            assert!(!documented.is_null(), "{what} answers {status}, which is not documented");
        }
    }
    // Every reference leads somewhere.
    let text = document.to_string();
    for part in text.split("\"#/components/schemas/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(!document["components"]["schemas"][name].is_null(), "{name}");
    }
    let body = &document["components"]["schemas"]["AcquireBody"];
    assert_eq!(body["additionalProperties"], json!(false));
}

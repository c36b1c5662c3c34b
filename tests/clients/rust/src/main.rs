//! rmcp, the MCP SDK for Rust. Reads url and key, or command, args and env; and calls.

use std::io::Read;
use std::sync::{Arc, Mutex};

use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock, ProgressNotificationParam};
use rmcp::service::{NotificationContext, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, RoleClient, ServiceExt};
use serde_json::{Map, Value, json};

type Failure = Box<dyn std::error::Error>;

/// Keeps what it hears of progress.
#[derive(Clone, Default)]
struct Listener {
    heard: Arc<Mutex<Vec<f64>>>,
}

impl ClientHandler for Listener {
    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.heard.lock().unwrap().push(params.progress);
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

async fn connect(ask: &Value, listener: Listener) -> Result<RunningService<RoleClient, Listener>, Failure> {
    if let Some(url) = ask["url"].as_str() {
        let config = StreamableHttpClientTransportConfig::with_uri(url).auth_header(text(&ask["key"]));
        return Ok(listener.serve(StreamableHttpClientTransport::from_config(config)).await?);
    }
    let mut command = tokio::process::Command::new(text(&ask["command"]));
    command.args(ask["args"].as_array().unwrap().iter().map(text));
    command.envs(ask["env"].as_object().unwrap().iter().map(|(name, value)| (name.clone(), text(value))));
    Ok(listener.serve(TokioChildProcess::new(command)?).await?)
}

fn shown(result: CallToolResult) -> Value {
    let (mut texts, mut images) = (vec![], vec![]);
    for block in result.content {
        match block {
            ContentBlock::Text(t) => texts.push(t.text),
            ContentBlock::Image(i) => images.push(json!({"mime": i.mime_type, "data": i.data})),
            _ => (),
        }
    }
    json!({"text": texts.join("\n"), "is_error": result.is_error == Some(true), "images": images})
}

async fn walk(ask: &Value) -> Result<Value, Failure> {
    let listener = Listener::default();
    let client = connect(ask, listener.clone()).await?;
    let tools: Vec<_> = client.list_all_tools().await?.into_iter().map(|tool| tool.name).collect();
    let mut calls = Map::new();
    for call in ask["calls"].as_array().unwrap() {
        // It asks for progress with each call.
        listener.heard.lock().unwrap().clear();
        let arguments = call["arguments"].as_object().unwrap().clone();
        let params = CallToolRequestParams::new(text(&call["tool"])).with_arguments(arguments);
        calls.insert(text(&call["case"]), shown(client.call_tool(params).await?));
    }
    client.cancel().await?;
    let heard = listener.heard.lock().unwrap().clone();
    Ok(json!({"tools": tools, "calls": calls, "progress": heard}))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let mut line = String::new();
    std::io::stdin().read_to_string(&mut line)?;
    let ask: Value = serde_json::from_str(&line)?;
    let seen = match walk(&ask).await {
        Err(error) if ask["may_fail"] == true => json!({"refused": format!("{error}: {error:?}")}),
        seen => seen?,
    };
    println!("{seen}");
    Ok(())
}

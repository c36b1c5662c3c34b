// The SDK as it is published, in every version that people still have: node e2e.mjs SDK BASE KEY MODEL
//
// What the model says is in the user's text: {"turns": [[step, ...], ...]}. Prints one line of JSON
// for each test, with what went wrong or null.

import assert from 'node:assert/strict';
import { createServer } from 'node:net';

const [, , sdk, baseURL, apiKey, model] = process.argv;
const { default: Anthropic, toFile } = await import(`${sdk}/index.mjs`);
const client = new Anthropic({ apiKey, baseURL, maxRetries: 0 });
const messages = client.beta.messages, files = client.beta.files;
const raw = { 'x-api-key': apiKey, 'anthropic-version': '2023-06-01', 'content-type': 'application/json' };

const code = (version) => ({ type: `code_execution_${version}`, name: 'code_execution' });
const local = { name: 'local', description: 'd', input_schema: { type: 'object' } };
const user = (turns, ...more) => ({ role: 'user', content: [{ type: 'text', text: JSON.stringify({ turns }) }, ...more] });
const asked = (turns, fields = {}, ...more) => ({
  model, max_tokens: 1024, tools: [code('20250825')], messages: [user(turns, ...more)], ...fields,
});
const go = (...args) => messages.create(asked(...args));
const said = (message) => ({ role: 'assistant', content: message.content });
const answered = (use, content) => ({ role: 'user', content: [{ type: 'tool_result', tool_use_id: use.id, content }] });
const kinds = (message) => message.content.map((block) => block.type);
const results = (message) => message.content.filter((b) => b.type.endsWith('_tool_result')).map((b) => b.content);

async function refused(promise, status) {
  const error = await promise.then(() => assert.fail('it was not refused'), (e) => e);
  assert.equal(error.status, status, error);
  return error;
}

const tests = {
  async '01 a key is needed, in either header, with either version'() {
    const stranger = new Anthropic({ apiKey: 'bad', baseURL, maxRetries: 0 });
    const error = await refused(stranger.messages.create(asked([[{ text: 'x' }]])), 401);
    assert.equal(error.error.error.type, 'authentication_error');
    assert.match(error.error.request_id, /^req_/);
    for (const key of [{ 'x-api-key': apiKey }, { authorization: `Bearer ${apiKey}` }]) {
      for (const version of ['2023-06-01', '2026-10-21']) {
        const list = await fetch(`${baseURL}/v1/files?beta=true&limit=1`, { headers: { ...key, 'anthropic-version': version } });
        assert.equal(list.status, 200);
        assert.match(list.headers.get('request-id'), /^req_/);
      }
    }
  },

  async '02 bash: blocks, ids, container, usage, without beta'() {
    const m = await client.messages.create(asked([[{ text: 'a' }, { bash: 'echo hi; echo oops >&2; exit 3' }], [{ text: 'b' }]]));
    assert.deepEqual(kinds(m), ['text', 'server_tool_use', 'bash_code_execution_tool_result', 'text']);
    const [, use, result] = m.content;
    assert.match(m.id, /^msg_/);
    assert.match(use.id, /^srvtoolu_[a-zA-Z0-9_]+$/);
    assert.equal(use.name, 'bash_code_execution');
    assert.deepEqual(use.caller, { type: 'direct' });
    assert.equal(result.tool_use_id, use.id);
    assert.deepEqual(result.content, {
      type: 'bash_code_execution_result', stdout: 'hi\n', stderr: 'oops\n', return_code: 3, content: [],
    });
    assert.equal(m.stop_reason, 'end_turn');
    assert.match(m.container.id, /^container_/);
    assert.ok(Date.parse(m.container.expires_at) > Date.now());
    assert.ok(m._request_id.startsWith('req_'));
    assert.ok(Number.isInteger(m.usage.output_tokens));
  },

  async '03 a command without time is an error block'() {
    assert.deepEqual(results(await go([[{ bash: 'sleep 600' }]])), [
      { type: 'bash_code_execution_tool_result_error', error_code: 'execution_time_exceeded' }]);
  },

  async '04 the editor: create, view, replace, what is not there'() {
    const path = 'conf.json', file_text = '1\n2\n3\n4\n"debug": true\n6\n7\n8\n9\n';
    const create = { edit: { command: 'create', path, file_text } };
    const r = results(await go([
      [create, create, { edit: { command: 'view', path } }],
      [{ edit: { command: 'view', path, view_range: [2, 3] } },
        { edit: { command: 'str_replace', path, old_str: '"debug": true', new_str: '"debug": false' } },
        { edit: { command: 'view', path: 'nope' } }],
    ]));
    assert.deepEqual([r[0].is_file_update, r[1].is_file_update], [false, true]);
    assert.deepEqual(r[2], {
      type: 'text_editor_code_execution_view_result', file_type: 'text', content: file_text.trimEnd(),
      num_lines: 9, start_line: 1, total_lines: 9,
    });
    assert.deepEqual([r[3].content, r[3].num_lines, r[3].start_line, r[3].total_lines], ['2\n3', 2, 2, 9]);
    assert.deepEqual(r[4], {
      type: 'text_editor_code_execution_str_replace_result', old_start: 2, old_lines: 7, new_start: 2, new_lines: 7,
      lines: [' 2', ' 3', ' 4', '-"debug": true', '+"debug": false', ' 6', ' 7', ' 8'],
    });
    assert.equal(r[5].type, 'text_editor_code_execution_tool_result_error');
    assert.equal(r[5].error_code, 'file_not_found');
    assert.ok('error_message' in r[5]);
  },

  async '05 calls of one turn: in their order, then their results'() {
    const m = await go([[{ bash: 'echo one > seq' }, { bash: 'cat seq' }, { edit: { command: 'view', path: 'seq' } }]]);
    assert.deepEqual(kinds(m), [
      'server_tool_use', 'server_tool_use', 'server_tool_use', 'bash_code_execution_tool_result',
      'bash_code_execution_tool_result', 'text_editor_code_execution_tool_result']);
    assert.deepEqual([results(m)[1].stdout, results(m)[2].content], ['one\n', 'one']);
  },

  async '06 a container: by its name, apart from others, unknown'() {
    const { container } = await go([[{ bash: 'echo 42 > keep' }]]);
    for (const form of [container.id, { id: container.id }]) {
      const again = await go([[{ bash: 'cat keep' }]], { container: form });
      assert.equal(again.container.id, container.id);
      assert.equal(results(again)[0].stdout, '42\n');
    }
    const other = await go([[{ bash: 'cat keep' }]]);
    assert.notEqual(other.container.id, container.id);
    assert.notEqual(results(other)[0].return_code, 0);
    const error = await refused(go([[{ bash: 'true' }]], { container: 'container_01doesnotexist' }), 404);
    assert.match(error.error.error.message, /container/i);
  },

  async '07 an upload is in $INPUT_DIR, and is not handed out'() {
    const f = await files.upload({ file: await toFile(Buffer.from('a,b\n1,2\n'), 'data.csv', { type: 'text/csv' }) });
    assert.match(f.id, /^file_/);
    assert.deepEqual([f.type, f.filename, f.mime_type, f.size_bytes, f.downloadable], ['file', 'data.csv', 'text/csv', 8, false]);
    const steps = [{ bash: 'cat "$INPUT_DIR/data.csv"' }, { edit: { command: 'view', path: '$INPUT_DIR/data.csv' } }];
    const r = results(await go([steps], {}, { type: 'container_upload', file_id: f.id }));
    assert.deepEqual([r[0].stdout, r[1].content], ['a,b\n1,2\n', 'a,b\n1,2']);
    const error = await refused(files.download(f.id), 400);
    assert.equal(error.error.error.details.error_code, 'file_not_downloadable');
    await refused(go([[{ bash: 'true' }]], {}, { type: 'container_upload', file_id: 'file_01missing' }), 404);
  },

  async '08 $OUTPUT_DIR: new for each call, its top level, byte for byte'() {
    const make = `python3 -c "import os; open(os.environ['OUTPUT_DIR'] + '/all.bin', 'wb').write(bytes(range(256)))"
      echo t > "$OUTPUT_DIR/b.txt"; mkdir "$OUTPUT_DIR/sub"; echo n > "$OUTPUT_DIR/sub/no.txt"; echo no > elsewhere.txt`;
    const [first, second] = results(await go([[{ bash: make }], [{ bash: 'ls "$OUTPUT_DIR" | wc -l' }]]));
    assert.deepEqual(first.content.map((o) => o.type), ['bash_code_execution_output', 'bash_code_execution_output']);
    assert.equal(second.stdout.trim(), '0');
    assert.deepEqual(second.content, []);
    const made = await Promise.all(first.content.map((o) => files.retrieveMetadata(o.file_id)));
    assert.deepEqual(made.map((f) => [f.filename, f.downloadable]).sort(), [['all.bin', true], ['b.txt', true]]);
    const got = await files.download(made.find((f) => f.filename === 'all.bin').id);
    assert.deepEqual([...new Uint8Array(await got.arrayBuffer())], [...Array(256).keys()]);
    assert.match(got.headers.get('content-disposition') ?? '', /all\.bin/);
  },

  async '09 files: pages in both shapes, ids, delete'() {
    const mine = [];
    for (const name of ['p0.txt', 'p1.txt', 'p2.txt']) mine.push((await files.upload({ file: await toFile(Buffer.from('x'), name) })).id);
    const seen = [];
    for await (const f of files.list({ limit: 2 })) if (seen.push(f.id) > 200) break;
    assert.ok(mine.every((id) => seen.includes(id)));
    assert.ok(seen.indexOf(mine[2]) < seen.indexOf(mine[0]), 'the newest first');
    const page = await (await fetch(`${baseURL}/v1/files?limit=2`, { headers: raw })).json();
    for (const key of ['data', 'next_page', 'has_more', 'first_id', 'last_id']) assert.ok(key in page, key);
    if (client.files) {
      const some = await client.files.list({ ids: [mine[0], 'file_01missing'] });
      assert.deepEqual(some.data.map((f) => f.id), [mine[0]]);
      const short = await client.files.upload({ file: await toFile(Buffer.from('x'), 'e.txt'), expires_in_seconds: 3600 });
      assert.ok(Math.abs(Date.parse(short.expires_at) - Date.now() - 3600e3) < 60e3);
    }
    assert.deepEqual({ ...(await files.delete(mine[0])) }, { id: mine[0], type: 'file_deleted' });
    const error = await refused(files.retrieveMetadata(mine[0]), 404);
    assert.equal(error.constructor.name, 'NotFoundError');
    assert.equal(error.error.error.type, 'not_found_error');
  },

  async '10 a stream: order, deltas, whole results, container, the same message'() {
    const events = [];
    const stream = messages.stream(asked([[{ text: 'go' }, { bash: 'echo "q\\"uote"; echo f > "$OUTPUT_DIR/f.txt"' }], [{ text: 'end' }]]));
    stream.on('streamEvent', (event) => events.push(structuredClone(event)));
    const m = await stream.finalMessage();
    assert.ok(stream.request_id?.startsWith('req_'));
    const types = events.map((e) => e.type);
    assert.deepEqual([types[0], ...types.slice(-2)], ['message_start', 'message_delta', 'message_stop']);
    assert.deepEqual([events[0].message.content, events[0].message.stop_reason], [[], null]);
    const starts = events.filter((e) => e.type === 'content_block_start');
    assert.deepEqual(starts.map((e) => e.index), [0, 1, 2, 3]);
    assert.deepEqual(starts[1].content_block.input, {});
    assert.equal(starts[2].content_block.type, 'bash_code_execution_tool_result');
    const deltas = events.filter((e) => e.type === 'content_block_delta');
    assert.ok(deltas.every((e) => e.index !== 2), 'a result comes whole');
    const typed = deltas.filter((e) => e.index === 1).map((e) => e.delta.partial_json).join('');
    assert.equal(JSON.parse(typed).command, m.content[1].input.command);
    assert.equal(results(m)[0].content.length, 1);
    assert.equal(m.stop_reason, 'end_turn');
    assert.match(m.container.id, /^container_/);
    assert.equal(m.container.id, events.at(-2).delta.container.id);
  },

  async '11 the first version: Python'() {
    const m = await go([[{ python: 'print(6*7)' }]], { tools: [code('20250522')], betas: ['code-execution-2025-05-22'] });
    assert.deepEqual(kinds(m), ['server_tool_use', 'code_execution_tool_result']);
    assert.deepEqual([m.content[0].name, m.content[0].input.code], ['code_execution', 'print(6*7)']);
    const [r] = results(m);
    assert.deepEqual([r.type, r.stdout.trim(), r.return_code, r.content], ['code_execution_result', '42', 0, []]);
  },

  async '12 code calls a tool of the client; variables stay'() {
    const lookup = { ...local, name: 'lookup', allowed_callers: ['code_execution_20260120'] };
    const fields = { tools: [code('20260521'), lookup] };
    const request = asked([[{ python: 'x = int(await lookup({"k": "a"})) + 1\nprint("x", x)' }], [{ text: 'ok' }]], fields);
    const first = await messages.create(request);
    assert.equal(first.stop_reason, 'tool_use');
    assert.deepEqual(kinds(first), ['server_tool_use', 'tool_use']);
    const [run, use] = first.content;
    assert.deepEqual(use.caller, { type: 'code_execution_20260120', tool_id: run.id });
    assert.deepEqual(use.input, { k: 'a' });
    const second = await messages.create({
      ...request, container: first.container.id, messages: [...request.messages, said(first), answered(use, '41')],
    });
    assert.deepEqual(kinds(second), ['code_execution_tool_result', 'text']);
    assert.equal(second.content[0].tool_use_id, run.id);
    assert.equal(results(second)[0].stdout, 'x 42\n');
    const third = await go([[{ python: 'print(x)' }]], { ...fields, container: first.container.id });
    assert.equal(results(third)[0].stdout.trim(), '42');
  },

  async '13 beside a tool of the client, ours wait'() {
    const request = asked([[{ bash: 'echo later' }, { tool: { name: 'local', input: { n: 1 } } }], [{ text: 'fin' }]],
      { tools: [code('20250825'), local] });
    const first = await messages.create(request);
    assert.equal(first.stop_reason, 'tool_use');
    assert.deepEqual(kinds(first), ['server_tool_use', 'tool_use']);
    const second = await messages.create({ ...request, messages: [...request.messages, said(first), answered(first.content[1], 'r')] });
    assert.equal(second.content[0].type, 'bash_code_execution_tool_result');
    assert.equal(second.content[0].tool_use_id, first.content[0].id);
    assert.equal(results(second)[0].stdout, 'later\n');
    assert.equal(second.stop_reason, 'end_turn');
  },

  async '14 a turn that pauses goes on where it was'() {
    const request = asked([...Array.from({ length: 12 }, (_, i) => [{ bash: `echo ${i}` }]), [{ text: 'end' }]]);
    const told = [];
    let m, container;
    do {
      m = await messages.create({ ...request, messages: [...request.messages, ...told], ...(container && { container }) });
      container = m.container.id;
      told.push(said(m));
    } while (m.stop_reason === 'pause_turn' && told.length < 5);
    assert.equal(m.stop_reason, 'end_turn');
    assert.deepEqual(told.flatMap(results).map((r) => r.stdout.trim()), [...Array(12).keys()].map(String));
  },

  async '15 what we have said is taken back, and more'() {
    const m = await go([[{ bash: 'echo z > "$OUTPUT_DIR/z"' }, { edit: { command: 'view', path: 'nope' } }], [{ text: 'k' }]]);
    const content = structuredClone(m.content);
    content[0].cache_control = { type: 'ephemeral' };
    results({ content })[0].abort_reason = null;
    const next = await messages.create({
      ...asked([]), container: m.container.id,
      messages: [user([[{ text: 'old' }]]), { role: 'assistant', content }, user([[{ bash: 'echo next' }]])],
    });
    assert.equal(results(next)[0].stdout, 'next\n');
  },

  async '16 what is wrong, and how it is said'() {
    const bad = await fetch(`${baseURL}/v1/messages`, { method: 'POST', headers: raw, body: '{' });
    const { type, error, request_id } = await bad.json();
    assert.deepEqual([bad.status, type, error.type], [400, 'error', 'invalid_request_error']);
    assert.equal(request_id, bad.headers.get('request-id'));
    await refused(go([[{ text: 'x' }]], { tools: [code('19990101')] }), 400);
    await refused(go([[{ text: 'x' }]], { tools: [{ ...code('20250825'), name: 'python' }] }), 400);
    assert.equal((await fetch(`${baseURL}/v1/nope`, { headers: raw })).status, 404);
  },

  async '17 the tool runner: no threads, the container kept'() {
    const ran = [];
    const tool = { ...local, parse: (x) => x, run: async (input) => { ran.push(input); return 'r'; } };
    const turns = [[{ bash: 'echo 7 > s' }], [{ tool: { name: 'local', input: { n: 1 } } }], [{ bash: 'cat s' }], [{ text: 'fin' }]];
    const last = await messages.toolRunner({ model, max_tokens: 256, tools: [code('20250825'), tool], messages: [user(turns)] }).runUntilDone();
    assert.deepEqual(ran, [{ n: 1 }]);
    assert.equal(last.stop_reason, 'end_turn');
    assert.equal(results(last)[0].stdout, '7\n');
  },

  async '18 code does not reach the host'() {
    let visits = 0;
    const listener = createServer((socket) => { visits++; socket.end(); });
    await new Promise((resolve) => listener.listen(0, '127.0.0.1', resolve));
    const { port } = listener.address();
    const m = await go([[{ bash: `timeout 2 bash -c "</dev/tcp/127.0.0.1/${port}" 2>/dev/null && echo NET || echo NONET` }]]);
    listener.close();
    assert.deepEqual([results(m)[0].stdout.trim(), visits], ['NONET', 0]);
  },

  async '19 a batch is left here, and its results are read later'() {
    const { batches } = client.messages;
    const params = (n) => asked([[{ bash: `echo ${n}` }], [{ text: 'done' }]]);
    let batch = await batches.create({ requests: [1, 2].map((n) => ({ custom_id: `n-${n}`, params: params(n) })) });
    assert.equal(batch.type, 'message_batch');
    while (batch.processing_status !== 'ended') batch = await batches.retrieve(batch.id);
    const read = {};
    for await (const line of await batches.results(batch.id)) read[line.custom_id] = results(line.result.message)[0].stdout;
    assert.deepEqual(read, { 'n-1': '1\n', 'n-2': '2\n' });
    const listed = [];
    for await (const one of batches.list({ limit: 1 })) { listed.push(one.id); if (listed.includes(batch.id)) break; }
    assert.ok(listed.includes(batch.id));
    assert.equal((await batches.cancel(batch.id)).processing_status, 'ended');
    assert.equal((await batches.delete(batch.id)).type, 'message_batch_deleted');
    await refused(batches.retrieve(batch.id), 404);
  },
};

for (const [name, test] of Object.entries(tests)) {
  const wrong = await test().then(() => null, (error) => String(error.stack ?? error));
  console.log(JSON.stringify({ name, wrong }));
}

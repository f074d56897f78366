// Asks with clients from npm: ask.mjs FOLDER CODE_URL CHAT_URL, where FOLDER has node_modules. The
// question, as JSON, comes on standard input, and what each client makes of the answers goes to
// standard output.
import { createRequire } from 'node:module';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';

const [folder, codeUrl, chatUrl] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/`));
const load = async (name) => import(pathToFileURL(require.resolve(name)).href);
const { prompt, suffix, messages, n } = JSON.parse(await text(process.stdin));
const model = 'any';
const found = {};

const said = async (stream, part) => {
  let all = '';
  for await (const event of stream) all += part(event) ?? '';
  return all;
};
const asked = async (name, ask) => {
  try {
    found[name] = await ask();
  } catch (error) {
    found[name] = `error: ${error.message}`;
  }
};

const { default: OpenAI } = await load('openai');
const { Ollama } = await load('ollama');
const { constructLlmApi } = await load('@continuedev/openai-adapters');
const signal = new AbortController().signal;

const clientsOf = (url) => ({
  openai: new OpenAI({ baseURL: `${url}/v1`, apiKey: 'any', maxRetries: 0 }),
  ollama: new Ollama({ host: url }),
  mistral: constructLlmApi({ provider: 'mistral', apiKey: 'any', apiBase: `${url}/v1/` }),
  compatible: constructLlmApi({ provider: 'openai', apiKey: 'any', apiBase: `${url}/v1/` }),
  atOllama: constructLlmApi({ provider: 'ollama', apiKey: 'any', apiBase: url }),
});

{
  const { openai, ollama, mistral, compatible } = clientsOf(codeUrl);
  const fim = { model, prompt, suffix, max_tokens: n };
  const streamed = { ...fim, stream: true };
  const generate = { model, prompt, suffix, options: { num_predict: n } };
  await asked('openai', async () => (await openai.completions.create(fim)).choices[0].text);
  await asked('openai, streamed', async () =>
    said(await openai.completions.create(streamed), (e) => e.choices[0]?.text));
  await asked('ollama', async () => (await ollama.generate({ ...generate, stream: false })).response);
  await asked('ollama, streamed', async () =>
    said(await ollama.generate({ ...generate, stream: true }), (e) => e.response));
  await asked('adapters, mistral', async () =>
    said(mistral.fimStream(fim, signal), (e) => e.choices[0].delta.content));
  await asked('adapters, openai', async () =>
    (await compatible.completionNonStream(fim, signal)).choices[0].text);
  await asked('adapters, openai, streamed', async () =>
    said(compatible.completionStream(streamed, signal), (e) => e.choices[0]?.text));
  await asked('models', async () => ({
    openai: (await openai.models.list()).data.map((m) => m.id),
    ollama: (await ollama.list()).models.map((m) => m.name),
    show: (await ollama.show({ model })).capabilities,
    ps: (await ollama.ps()).models.length,
  }));
}
{
  const { openai, ollama, atOllama } = clientsOf(chatUrl);
  const chat = { model, messages, max_tokens: n };
  const streamed = { ...chat, stream: true };
  const options = { num_predict: n };
  await asked('chat: openai', async () =>
    (await openai.chat.completions.create(chat)).choices[0].message.content);
  await asked('chat: openai, streamed', async () =>
    said(await openai.chat.completions.create(streamed), (e) => e.choices[0]?.delta.content));
  await asked('chat: ollama', async () =>
    (await ollama.chat({ model, messages, options, stream: false })).message.content);
  await asked('chat: ollama, streamed', async () =>
    said(await ollama.chat({ model, messages, options, stream: true }), (e) => e.message.content));
  await asked('chat: adapters, ollama, streamed', async () =>
    said(atOllama.chatCompletionStream(streamed, signal), (e) => e.choices[0]?.delta.content));
}
console.log(JSON.stringify(found));

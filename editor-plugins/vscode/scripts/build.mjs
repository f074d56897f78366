// Fills dist/: the bundled extension, and codespec itself for "Create Python Environment", which is
// what Git has or would take of its sources. Their digest names the environment made from them.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = fileURLToPath(new URL('..', import.meta.url));
const root = join(here, '..', '..');
const dist = join(here, 'dist');
const parts = ['.ci', 'codespec', 'lsp', 'bench', 'pyproject.toml', 'README.md', 'LICENSE'];

await build({
  entryPoints: [join(here, 'src', 'extension.ts')],
  outfile: join(dist, 'extension.js'),
  bundle: true,
  minify: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20',
  external: ['vscode'],
});

const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z', ...parts], {
  cwd: root,
  encoding: 'utf8',
});
const files = listed.split('\0').filter((name) => name && existsSync(join(root, name)));
files.sort();
const digest = createHash('sha256');
for (const name of files) {
  digest.update(`${name}\0`).update(readFileSync(join(root, name)));
}
mkdirSync(dist, { recursive: true });
execFileSync('tar', ['-czf', join(dist, 'source.tar.gz'), '-T', '-'], {
  cwd: root,
  input: files.join('\n'),
});
writeFileSync(join(dist, 'source.digest'), digest.digest('hex').slice(0, 12));
copyFileSync(join(root, 'LICENSE'), join(dist, 'LICENSE'));

/**
 * Where our threads begin. Plain JavaScript, so that the process's compile cache, if it has one, is on before the
 * first TypeScript file is loaded: a thread that strips types itself takes 17 MB more (74 MB against 57 MB).
 */
import module from 'node:module'
import { workerData } from 'node:worker_threads'

if (workerData.compileCache) module.enableCompileCache(workerData.compileCache)
await import(workerData.script)

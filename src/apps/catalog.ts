/** Every setting of the engine, the services and the apps. Loaded only by who reads the configuration. */
import { Catalog } from '../config/catalog.ts'
import { coreSections } from '../config/settings.ts'
import { apps } from './registry.ts'

const ofApps = await Promise.all(apps.map((app) => app.settings()))

export const catalog = new Catalog([...coreSections, ...ofApps.flat()])

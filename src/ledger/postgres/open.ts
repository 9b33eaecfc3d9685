import type { Clock } from '../../clock.ts'
import type { Driver } from '../contract.ts'
export async function openPostgres(_o: { url: string; clock: Clock }): Promise<Driver> { throw new Error('soon') }

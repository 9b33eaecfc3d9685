/**
 * How the caller of a cloud client paces its calls by what they cost: within a budget, and none of them while one
 * was asked to wait.
 */
export type Pace = <T>(
  call: { method: string; units: number; signal?: AbortSignal },
  fn: (signal?: AbortSignal) => Promise<T>,
) => Promise<T>

/** OneDrive in the simulated cloud: what it is called, its flags, and the faults that only it can meet. */
import type { SimService } from '../service.ts'
import type { OneDrive, OneDriveOptions } from './onedrive.ts'

export const onedrive: SimService<OneDriveOptions, OneDrive> = {
  title: 'OneDrive',
  faultProfiles: {
    throttle: [{ do: 'throttle', status: 503, everyNth: 97, burst: 2, retryAfterSeconds: 1 }],
  },
  flags: [
    {
      flag: '--drive <address>',
      about: 'a OneDrive of this account; may be given several times',
      takes: 'addresses',
    },
    {
      flag: '--drive-type <type>',
      about: 'of the drives',
      takes: ['personal', 'business'],
      byDefault: 'personal',
    },
    {
      flag: '--files <number>',
      about: 'how many files each drive has',
      takes: { min: 0, max: 1_000_000 },
      byDefault: 1_000,
    },
  ],
  fromFlags: (accounts, { driveType, files }) => ({
    drives: accounts.map((account) => ({
      account,
      type: driveType === 'business' ? 'business' : 'personal',
      files: Number(files),
    })),
  }),
  start: async (kernel, options) => new (await import('./onedrive.ts')).OneDrive(kernel, options),
}

/** What an app shows of an account on its card, and what it lets choose before one is connected. */
import type { ComponentType, JSX } from 'preact'
import type { Account } from '../api.ts'
import type { Tone } from '../components/tone.ts'

export type AccountState = { text: string; tone: Tone; hint?: string }

/** `Told`: what the app says of an account. */
export type AccountPart<Told = never> = {
  /** How it is, while the account is let in. */
  state?: (told: Told) => AccountState
  /** Where there is more about it. */
  href?: (told: Told) => string
  /** What was chosen for it. */
  words?: (told: Told) => string[]
  Body: (props: { told: Told }) => JSX.Element
  /** Buttons. */
  Actions?: (props: { account: Account; told: Told }) => JSX.Element
  /** What forgetting the account means for it. */
  forgetting: (told: Told) => string
  choices?: Choices
  /** A card for what can be begun with accounts, which are given by their names. */
  Begin?: ComponentType<{ accounts: readonly string[] }>
}

export type Choices = {
  initial: Readonly<Record<string, boolean>>
  Fields: ComponentType<{
    chosen: Choices['initial']
    onChange: (chosen: Choices['initial']) => void
  }>
}

/** By the name of the app. */
export type AccountParts = Readonly<Record<string, AccountPart>>

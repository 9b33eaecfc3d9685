/** Histories in which the oracle once found something, each as short as it could be made. */
import { test } from 'node:test'
import { replay } from './run.ts'

test('the same saved on both sides while OneDrive was known to hold something else is no conflict', () =>
  replay(['crash', '+17 there save caf\u00e9', '+55 there swap caf\u00e9 caf\u00e9', 'both write caf\u00e9']))

test('a folder that takes the place of a deleted one lets what was in that one be deleted', () =>
  replay(['here write a/x', 'here mkdir b/A', 'settle', 'here delete b', 'here move a b']))

test('a file is deleted although its folder is renamed at the same moment', () =>
  replay(['there write a/a/x', '+1 here save a/a/x', 'settle', '+41 there move a A', 'there delete A/a/x'], {
    seed: 40_174,
  }))

test('a document that a personal drive rewrites is sent twice at most, and is no conflict', () =>
  replay(['quirk rewritesUploads', 'here save x/r.docx', 'settle', 'here save x/r.docx']))

test('a new item whose name comes encoded and that is not found at first has its true name', () =>
  replay(['quirk freshItemNotFound', 'quirk namesEncoded', 'there write caf\u00e9/x']))

test('content that was fetched only to be compared is not left behind', () =>
  replay([
    'quirk hashMissing',
    'both write caf\u00e9',
    'there write cafe\u0301',
    'here save b',
    'settle',
    'both write x/a/b',
  ]))

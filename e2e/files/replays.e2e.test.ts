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

test('what a first reading has found is missed when it is deleted during the next reading from the start', () =>
  replay([
    '+18 there write a/cafe\u0301/x',
    'there delete a/cafe\u0301/x',
    'sync',
    '+45 here write a/a',
    'sync',
    'there delete a',
    'expire-delta',
    '+3 here delete A/cafe\u0301/x',
    'sync',
    'here move A a',
    '+11 here delete a',
  ]))

test('something new in a folder that OneDrive has deleted is in step after one sync', () =>
  replay(['there write b/x', 'there move b/x x/a', 'settle', 'there delete x', 'here write x/b/b']))

test('a folder that takes over what was in a deleted one of its name in another case is in step', () =>
  replay(['here write B/x/x/x', 'settle', 'here move B/x b/a', 'here delete B']))

test('a document that is rewritten at once and once more later is no conflict', () =>
  replay(['quirk rewritesUploads', 'quirk rewritesUploadsLater', 'here save A/r.docx']))

test('two empty files agree, and an edit of one of them is no conflict', () =>
  replay([
    'quirk hashMissingOnEmpty',
    'here write x empty',
    'there write x empty',
    'settle',
    'there write x',
    'settle',
  ]))

test('two things that exchange their names in OneDrive while one has a namesake here are in step', () =>
  replay(
    [
      'here write X/b',
      'settle',
      'sync',
      'there move X/b a',
      '+42 here delete b',
      '+38 both write A empty',
      'both write b/x',
      'here copy b/x cafe\u0301',
      'settle',
      'there swap A cafe\u0301',
    ],
    { seed: 200_100 },
  ))

test('an exchange of names that a clash of case brings to nothing leaves no name of our own', () =>
  replay(['here write A/x/b', 'settle', 'here move A/x a', 'here swap a/b A', 'there write cafe\u0301/b'], {
    seed: 200_298,
  }))

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

test('a file that was moved here to where OneDrive has the same as another item is that one, without a copy', () =>
  replay(['both write a', 'settle', 'here move a b', 'both write b']))

test('the same without hashes, and where somebody edits the item that it had', () =>
  replay([
    'quirk hashMissing',
    'both write a',
    'settle',
    'here move a b',
    'both write b',
    'there write a',
    'settle',
  ]))

test('two files with the same content that got the same name, one here and one there, become one', () =>
  replay(['here write a', 'here copy a x', 'settle', 'here move a b', 'there move x b']))

test('what was copied here to where OneDrive has moved it is there once', () =>
  replay(['here write x', 'settle', 'here copy x b', 'there move x b']))

test('where only uploads are on, nothing is renamed here for a name that OneDrive has given away', () =>
  replay([
    'mode upload-only',
    'here write a',
    'here write b',
    'settle',
    'here move a c',
    'there move b c',
    'settle',
  ]))

test('where only downloads are on, nothing changes in OneDrive, and what was done here goes up later', () =>
  replay([
    'mode download-only',
    'there write a',
    'there write b/x',
    'settle',
    'here write a',
    'here move b c',
    'here delete c/x',
    'there write b/x',
    'here write d',
    'settle',
  ]))

test('where somebody decides about conflicts, nothing is lost whatever he says', () =>
  replay([
    'policy manual',
    'both write a',
    'both write b',
    'both write x',
    'settle',
    ...['a', 'b', 'x'].flatMap((name) => [`here write ${name}`, `there write ${name}`]),
    'settle',
  ]))

test('what takes no part for a while, and changes on both sides meanwhile, is in step when it does again', () =>
  replay([
    'both write a/x',
    'settle',
    'skip a/',
    'settle',
    'here write a/x',
    'there move a/x a/b',
    'here delete a',
    'settle',
    'skip none',
    'settle',
  ]))

test('a name that comes encoded, of an item that is listed but not given for a while, is the true one', () =>
  replay(['quirk namesEncoded', 'quirk changedNotFoundMs', 'there save x/cafe\u0301']))

test('a document that is rewritten twice, and is not found when it is sent again, is no conflict', () =>
  replay([
    'quirk rewritesUploads',
    'quirk rewritesUploadsLater',
    'quirk freshItemNotFound',
    'here save A/r.docx',
  ]))

test('what OneDrive lists and does not give for a while is neither deleted nor copied', () =>
  replay([
    'both write a',
    'here write b/x',
    'settle',
    'quirk changedNotFoundMs',
    'there write a',
    'there write b/x',
    'settle',
    'here write a',
    'here delete b/x',
    'there write x',
    'settle',
    'there delete x',
    'here move a b',
  ]))

test('what a link takes the place of stays in OneDrive, and goes on when it is back', () =>
  replay([
    'here write a/b/x',
    'here write x',
    'settle',
    'here link a/b',
    'here link x',
    'settle',
    'there write a/b/a',
    'there move x b',
    'settle',
    'here unlink a/b',
    'here unlink x',
    'settle',
  ]))

test('links that are followed and then left alone again take nothing out of OneDrive', () =>
  replay([
    'links follow',
    'here write a/x',
    'here alias a b',
    'settle',
    'links leave',
    'settle',
    'there write a/x',
    'settle',
    'links follow',
    'settle',
  ]))

test('a folder that takes the name of a file whose deletion waits for a yes keeps its name', () =>
  replay(['there save A', 'settle', 'here delete A', 'sync', 'here write a/x', 'settle']))

test('two new files that only their bytes tell from each other are both kept', () =>
  replay(['there write b records', 'here write b records', 'settle']))

test('what is renamed to a name that is left out, or is no text, stays in OneDrive and comes back', () =>
  replay([
    'here write a/x',
    'here write b',
    'settle',
    'here move a x.tmp',
    'here move b x%ff',
    'settle',
    'there write a/x',
    'there save x.tmp',
    'settle',
    'here move x.tmp a',
    'settle',
  ]))

test('what was saved since an old copy took the place of the folder is not lost', () =>
  replay([
    'here write a',
    'here write b/x',
    'settle',
    'here keep',
    'here write a',
    'there write b/a',
    'here delete b/x',
    'settle',
    'here restore',
    'settle',
    'there write a',
    'here restore',
    'settle',
  ]))

test('many files that are overwritten on one side and edited on the other are all kept, whatever is answered', () =>
  replay([
    'here many m',
    'here overwrite m',
    'settle',
    'there overwrite m',
    'here overwrite m',
    'answer no',
    'settle',
    'there overwrite m',
    'settle',
    'answer yes',
    'settle',
  ]))

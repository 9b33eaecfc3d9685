import { ledgerContract } from '../contract.suite.ts'
import { libsqlHome, onLibsql } from '../home.suite.ts'

onLibsql(() => ledgerContract(libsqlHome()))

import { ledgerContract } from '../contract.suite.ts'
import { hasLibsql, libsqlHome } from '../home.suite.ts'

if (hasLibsql()) ledgerContract(libsqlHome())

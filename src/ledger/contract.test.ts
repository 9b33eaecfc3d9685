import { ledgerContract } from './contract.suite.ts'
import { fileHome, memoryHome } from './desk.suite.ts'

ledgerContract(memoryHome())
ledgerContract(fileHome())

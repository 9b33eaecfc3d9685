import { ledgerContract } from './contract.suite.ts'
import { fileHome, memoryHome, postgresHome } from './home.suite.ts'

ledgerContract(memoryHome())
ledgerContract(fileHome())
ledgerContract(postgresHome())

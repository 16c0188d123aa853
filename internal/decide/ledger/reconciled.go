package ledger

import "strings"

// reconciledRule is the prefix of the rules of postings that correct the ledger to a provider's bill.
const reconciledRule = "bill_"

// ReconciledRule returns the rule of a posting for a part of the difference, such as price or tax.
func ReconciledRule(part string) string { return reconciledRule + part }

// Reconciles reports whether postings by the rule correct the ledger to a provider's bill.
func Reconciles(rule string) bool { return strings.HasPrefix(rule, reconciledRule) }

package ledger

import (
	"slices"
	"strings"
)

// reconciledRule is the prefix of the rules of postings that correct the ledger to a provider's bill.
const reconciledRule = "bill_"

// ReconciledRule returns the rule of a posting for a part of the difference, such as price or tax.
func ReconciledRule(part string) string { return reconciledRule + part }

// Reconciles reports whether postings by the rule correct the ledger to a provider's bill.
func Reconciles(rule string) bool { return strings.HasPrefix(rule, reconciledRule) }

// extras are the parts of a bill that no price of a machine contains: an estimate of a job's cost leaves them out.
var extras = []string{"commitment", "credit", "tax"}

// Apart returns the kind of a cost that is not part of any machine's price: an Extra of a bill, or DataRule.
func Apart(rule string) (kind string, ok bool) {
	if rule == DataRule {
		return DataRule, true
	}
	return Extra(rule)
}

// Extra returns the part that postings by the rule correct, if it is tax, a credit or a commitment of a bill.
// Comparisons with an estimate leave these parts out, because the estimate does.
func Extra(rule string) (part string, ok bool) {
	part, ok = strings.CutPrefix(rule, reconciledRule)
	return part, ok && slices.Contains(extras, part)
}

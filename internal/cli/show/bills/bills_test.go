package bills

import (
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/cli/show"
)

// A bill whose rows have no account says so instead of ending in the middle of a sentence.
func TestImportedBills_NamesAMissingAccount(t *testing.T) {
	for account, want := range map[string]string{"": "AWS, no account: 1 line", "7": "AWS of 7: 1 line"} {
		b := api.Bill{Provider: "AWS", Account: account, Month: "2026-10", Lines: 1}
		texts := []string{ImportedBills([]api.ImportedBill{{Bill: b}}, show.Place{}), RemovedBill(api.RemovedBill{Bill: b}, show.Place{})}
		for _, text := range texts {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in %q", want, text)
			}
		}
	}
}

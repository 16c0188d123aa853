// Command checkreceipt checks the demo's receipt against what the demo promises.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"scrimp/internal/decide/receipt"
)

func main() {
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "checkreceipt:", err)
		os.Exit(1)
	}
	fmt.Println("the receipt adds up")
}

func check(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var r receipt.Receipt
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	if err := r.Check(); err != nil {
		return err
	}
	if err := interrupted(r); err != nil {
		return err
	}
	switch {
	case r.State != "succeeded":
		return fmt.Errorf("the job %s: %s", r.State, r.Reason)
	case r.DeadlineMet == nil || !*r.DeadlineMet:
		return fmt.Errorf("the deadline was not met")
	case r.Budget == nil || r.Cost.Cmp(*r.Budget) > 0:
		return fmt.Errorf("it cost %v, over the budget", r.Cost)
	case r.OnDemandCost == nil || r.OnDemandCost.Cmp(r.Cost) <= 0:
		return fmt.Errorf("it did not cost less than on-demand")
	case !r.Ledger.Agrees:
		return fmt.Errorf("the ledger does not agree")
	}
	return nil
}

// interrupted checks that there were enough interruptions, each followed by a restore.
func interrupted(r receipt.Receipt) error {
	silent := 0
	for _, i := range r.Interruptions {
		if i.Notice == 0 {
			silent++
		}
		if i.Restored == nil {
			return fmt.Errorf("after %s nothing was restored", i.Instance)
		}
	}
	if len(r.Interruptions) < 3 || silent < 1 {
		return fmt.Errorf("%d interruptions, %d without notice: too few to prove anything", len(r.Interruptions), silent)
	}
	return nil
}

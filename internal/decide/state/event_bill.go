package state

import (
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

// Events about bills.
type (
	// BillReceived: the provider's total charge for an instance, as far as it is known now. It may come at any time
	// after the instance ended, and again: the newest bill replaces earlier ones. A bill that comes before the end
	// is incomplete; scrimp does not book it, and the sender must send it again.
	BillReceived struct {
		Instance string     `json:"instance"`
		Launch   string     `json:"launch,omitempty"`
		Lines    []BillLine `json:"lines"`
	}
	// BillReconciled: somebody books the differences between the providers' bills of a month and the ledger. After is
	// the newest such event that the sender's amounts include (0: none). The core ignores the event if it knows a
	// newer one, because the amounts are out of date.
	BillReconciled struct {
		Month string           `json:"month"` // such as 2026-10
		After uint64           `json:"as_of"`
		Lines []ReconciledLine `json:"lines"`
	}
)

// BillLine is one line of a provider's bill for an instance. Credits are negative.
type BillLine struct {
	Rule     string          `json:"rule,omitempty"`     // empty for plain seconds
	Category ledger.Category `json:"category,omitempty"` // empty: machine time
	SKU      string          `json:"sku,omitempty"`      // empty: the machine's own
	Rate     money.Rate      `json:"rate,omitempty"`     // per hour; 0: unknown
	Amount   money.Amount    `json:"amount"`
	Currency money.Currency  `json:"currency"`
	From     time.Time       `json:"from,omitzero"` // billed period; zero: the life of the instance
	To       time.Time       `json:"to,omitzero"`
}

// ReconciledLine is a part of the difference between a provider's bill and the ledger, for one owner and use.
type ReconciledLine struct {
	Owner    ledger.Owner    `json:"owner"`
	Rule     string          `json:"rule"`
	Category ledger.Category `json:"category"`
	Use      ledger.Use      `json:"use"`
	Provider string          `json:"provider,omitempty"`
	Region   string          `json:"region,omitempty"`
	SKU      string          `json:"sku,omitempty"`
	Amount   money.Amount    `json:"amount"` // negative: the bill is lower
	Currency money.Currency  `json:"currency"`
	From     time.Time       `json:"from,omitzero"` // within the month
	To       time.Time       `json:"to,omitzero"`
}

package client

import (
	"time"

	"scrimp/money"
)

// Cache is the kept outputs of pipeline stages that a run may use instead of making them again, those with the most
// value per byte first.
type Cache struct {
	Entries []CacheEntry `json:"entries"`
	Bytes   int64        `json:"bytes"` // on disk
	// Saved is what the uses would have cost by what making the outputs cost; uses of outputs that are gone count too.
	Saved    money.Amount   `json:"saved"`
	Currency money.Currency `json:"currency"`
}

// CacheEntry is the outputs of a stage.
type CacheEntry struct {
	Job     string        `json:"job"` // that made them
	Group   string        `json:"group"`
	Stage   string        `json:"stage"`
	Team    string        `json:"team"`
	Project string        `json:"project"`
	Bytes   int64         `json:"bytes"` // on disk
	Cost    *money.Amount `json:"cost"`  // of making them; null: unknown
	Made    time.Time     `json:"made"`
	Uses    int           `json:"uses"`   // runs that used them
	Used    *time.Time    `json:"used"`   // the last time; null: never
	Odds    float64       `json:"odds"`   // of a use within 30 days
	Value   *float64      `json:"value"`  // expected saving in the currency: cost times odds; null: unknown
	Needed  bool          `json:"needed"` // a pipeline that is not over may read them, so that they stay
}

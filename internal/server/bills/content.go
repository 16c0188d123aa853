package bills

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/big"

	"scrimp/client"
)

// count adds a line or an unread row to what identifies the content of a bill.
func (i *arrived) count(b *client.Bill, v any) {
	text, _ := json.Marshal(v) // texts, numbers and times, so it cannot fail
	sum := sha256.Sum256(text)
	i.content[b].Add(i.content[b], new(big.Int).SetBytes(sum[:]))
}

// digestOf identifies the content of a bill.
func (i *arrived) digestOf(b *client.Bill) string {
	sum := sha256.Sum256(i.content[b].Bytes())
	return hex.EncodeToString(sum[:])
}

package state

import (
	"encoding/json"
	"reflect"
	"testing"
)

// decode reads what encoding/json reads, to the same value, and refuses what it refuses.
func TestDecode_ReadsAsEncodingJSON(t *testing.T) {
	t.Parallel()
	const part = `{"jobs":[{"id":"j","terms":{"name":"j","Need":{"cpus":4},"priority":1,"currency":"USD","restart_ns":60,` +
		`"grace_ns":20,"saves":true,"unknown":[1,{"a":null}]},"user":"é\u00e9","state":"queued","event":12,"order":3,` +
		`"state":"running"}],"rejected":[]}`
	texts := []string{part + " ", part + "x", `null`, `[]`, `{"jobs":{}}`, `{"jobs":[{"event":"x"}]}`, `{"jobs":[{"event":1.5}]}`,
		`{"jobs":[{"user":"` + "\xff" + `"}]}`, `{"jobs":[{"event":-1}]}`, `{"jobs":null}`}
	for n := range len(part) + 1 {
		texts = append(texts, part[:n])
	}
	for _, text := range texts {
		var got, want storedPart
		err, wrong := decode([]byte(text), &got), json.Unmarshal([]byte(text), &want)
		if (err == nil) != (wrong == nil) || err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v and %+v, encoding/json says %v and %+v", text, err, got, wrong, want)
		}
	}
}

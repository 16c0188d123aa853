package local

import "testing"

func TestLaunch_ReadsAnswerOfOlderMarket(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{`{"id":"a","key":"k"}`: 1, ` [{"id":"a"},{"id":"b"}]`: 2, "[]": 0} {
		var list granted
		if err := list.UnmarshalJSON([]byte(text)); err != nil || len(list) != want || want > 0 && list[0].ID != "a" {
			t.Errorf("%s is %v, %v", text, list, err)
		}
	}
}

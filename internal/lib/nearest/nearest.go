// Package nearest finds the word that somebody may have meant.
package nearest

import (
	"cmp"
	"slices"
)

// Of returns the word that is most similar to s, or "" if none is similar.
func Of(s string, words []string) string {
	words = slices.Sorted(slices.Values(words))
	best, least := "", max(2, len(s)/3)+1
	for _, w := range words {
		if d := distance(s, w); d < least && d < max(len(s), len(w)) {
			best, least = w, d
		}
	}
	return best
}

// Order returns the words without repetition, the most similar to s first.
func Order(s string, words []string) []string {
	words = slices.Compact(slices.Sorted(slices.Values(words)))
	slices.SortStableFunc(words, func(a, b string) int { return cmp.Compare(distance(s, a), distance(s, b)) })
	return words
}

// distance is the Levenshtein distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

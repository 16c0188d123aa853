package slurm

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	arrayPart = regexp.MustCompile(`^[0-9]{1,10}(-[0-9]{1,10}(:[0-9]{1,10})?)?$`)
	arrayMost = regexp.MustCompile(`^[0-9]{1,10}$`)
)

// Arrays returns the indexes of an array as scrimp writes them, one text for each of its arrays, because an array of
// scrimp has a single range: 1,5-9:2%4 is 1-1%4 and 5-9:2%4. It returns false for what is no list of indexes.
func Arrays(value string) (list []string, ok bool) {
	indexes, most, limited := strings.Cut(value, "%")
	if limited && !arrayMost.MatchString(most) {
		return nil, false
	}
	for part := range strings.SplitSeq(indexes, ",") {
		if !arrayPart.MatchString(part) {
			return nil, false
		}
		if !strings.Contains(part, "-") {
			part = fmt.Sprintf("%s-%s", part, part)
		}
		if limited {
			part += "%" + most
		}
		list = append(list, part)
	}
	return list, true
}

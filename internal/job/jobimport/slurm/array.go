package slurm

import (
	"fmt"
	"regexp"
	"strconv"
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

// nodesForm matches the number of machines: 4, 2-4.
var nodesForm = regexp.MustCompile(`^([0-9]{1,7})(?:-([0-9]{1,7}))?$`)

// Nodes parses the number of machines, or its range. It returns false for other forms, such as lists.
func Nodes(value string) (least, most int, ok bool) {
	m := nodesForm.FindStringSubmatch(value)
	if m == nil {
		return 0, 0, false
	}
	least, _ = strconv.Atoi(m[1]) // at most seven digits
	if most = least; m[2] != "" {
		most, _ = strconv.Atoi(m[2])
	}
	return least, most, least >= 1 && most >= least && most <= 1<<20
}

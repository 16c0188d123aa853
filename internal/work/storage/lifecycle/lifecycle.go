// Package lifecycle writes the lifecycle configurations of buckets: rules by which S3, Google Cloud Storage and Azure
// Blob Storage move objects to another storage class.
package lifecycle

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
)

// A Transition moves the objects below some prefixes to a class.
type Transition struct {
	Rule     int // its number in the rules file
	Prefixes []string
	Days     int // age of the objects
	Class    string
	Least    int64 // smaller objects stay; S3 only
}

// Formats lists the formats of lifecycle configurations.
var Formats = []string{"s3", "s3-xml", "gcs", "azure"}

// stores lists the store of each provider's format.
var stores = map[string]string{"s3": "aws", "gcs": "gcp", "azure": "azure"}

// StoreOf returns the store of a format.
func StoreOf(format string) string { return stores[strings.TrimSuffix(format, "-xml")] }

// Write returns the configuration in a format. Azure needs the container's name.
func Write(format, container string, list []Transition) ([]byte, error) {
	switch format {
	case "s3":
		return indented(s3JSON(list))
	case "s3-xml":
		text, err := xml.MarshalIndent(s3XML(list), "", "  ")
		return append([]byte(xml.Header), append(text, '\n')...), err
	case "gcs":
		return indented(gcsJSON(list))
	}
	return indented(azureJSON(list, container))
}

func indented(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	return append(text, '\n'), err
}

type object = map[string]any

func s3JSON(list []Transition) any {
	rules := []object{}
	for _, t := range list {
		for i, prefix := range t.Prefixes {
			filter := object{"Prefix": prefix}
			if t.Least > 0 {
				filter = object{"And": object{"Prefix": prefix, "ObjectSizeGreaterThan": t.Least - 1}}
			}
			rules = append(rules, object{"ID": fmt.Sprintf("scrimp-%d-%d", t.Rule, i+1), "Status": "Enabled", "Filter": filter,
				"Transitions": []object{{"Days": t.Days, "StorageClass": t.Class}}})
		}
	}
	return object{"Rules": rules}
}

type s3Rule struct {
	ID     string `xml:"ID"`
	Filter struct {
		Prefix *string `xml:"Prefix,omitempty"`
		And    *s3And  `xml:"And,omitempty"`
	} `xml:"Filter"`
	Status     string `xml:"Status"`
	Transition struct {
		Days  int    `xml:"Days"`
		Class string `xml:"StorageClass"`
	} `xml:"Transition"`
}

type s3And struct {
	Prefix string `xml:"Prefix"`
	Least  int64  `xml:"ObjectSizeGreaterThan"`
}

type s3Configuration struct {
	XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ LifecycleConfiguration"`
	Rules   []s3Rule `xml:"Rule"`
}

func s3XML(list []Transition) (c s3Configuration) {
	for _, t := range list {
		for i, prefix := range t.Prefixes {
			r := s3Rule{ID: fmt.Sprintf("scrimp-%d-%d", t.Rule, i+1), Status: "Enabled"}
			if t.Least > 0 {
				r.Filter.And = &s3And{prefix, t.Least - 1}
			} else {
				r.Filter.Prefix = &prefix
			}
			r.Transition.Days, r.Transition.Class = t.Days, t.Class
			c.Rules = append(c.Rules, r)
		}
	}
	return c
}

// gcsPrefixes bounds the prefixes of one condition.
const gcsPrefixes = 50

func gcsJSON(list []Transition) any {
	rules := []object{}
	for _, t := range list {
		for part := range slices.Chunk(t.Prefixes, gcsPrefixes) {
			condition := object{"age": t.Days}
			if part[0] != "" {
				condition["matchesPrefix"] = part
			}
			rules = append(rules, object{"action": object{"type": "SetStorageClass", "storageClass": t.Class},
				"condition": condition})
		}
	}
	return object{"rule": rules}
}

// azurePrefixes bounds the prefixes of one rule.
const azurePrefixes = 10

func azureJSON(list []Transition, container string) any {
	rules := []object{}
	for _, t := range list {
		n := 0
		for part := range slices.Chunk(t.Prefixes, azurePrefixes) {
			n++
			var match []string
			for _, prefix := range part {
				match = append(match, container+"/"+prefix)
			}
			rules = append(rules, object{"name": fmt.Sprintf("scrimp%dx%d", t.Rule, n), "enabled": true, "type": "Lifecycle",
				"definition": object{"filters": object{"blobTypes": []string{"blockBlob"}, "prefixMatch": match},
					"actions": object{"baseBlob": object{"tierTo" + t.Class: object{
						"daysAfterModificationGreaterThan": t.Days}}}}})
		}
	}
	return object{"rules": rules}
}

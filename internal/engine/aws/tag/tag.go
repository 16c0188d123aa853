//go:build !local

// Package tag defines the tags of everything that an engine creates in EC2.
package tag

import (
	"maps"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/engine"
)

// Tags of everything that scrimp creates. The request's tags are added.
const (
	Engine       = "scrimp-engine"
	Key          = "scrimp-key"
	Offer        = "scrimp-offer"
	Nodes        = "scrimp-nodes"
	Reservation  = "scrimp-reservation"  // reservation that it was launched into
	installation = "scrimp-installation" // package control defines it, and incarnation
	incarnation  = "scrimp-incarnation"
)

// Of converts tags to EC2's form, sorted by name.
func Of(from map[string]string) (list []types.Tag) {
	for _, k := range slices.Sorted(maps.Keys(from)) {
		list = append(list, types.Tag{Key: sdk.String(k), Value: sdk.String(from[k])})
	}
	return list
}

// Plain converts tags from EC2's form.
func Plain(list []types.Tag) map[string]string {
	m := make(map[string]string, len(list))
	for _, t := range list {
		m[sdk.ToString(t.Key)] = sdk.ToString(t.Value)
	}
	return m
}

// Given returns the caller's tags.
func Given(tags map[string]string) map[string]string {
	m := maps.Clone(tags)
	maps.DeleteFunc(m, func(k, _ string) bool {
		return k == "Name" || k == Engine || k == Key || k == Offer || k == Nodes ||
			k == Reservation || strings.HasPrefix(k, "aws:")
	})
	return m
}

// Owner returns the tags that name the owner of an object of an engine.
func Owner(name string, q *engine.Request) map[string]string {
	m := map[string]string{Engine: name, "Name": "scrimp-" + name}
	for _, k := range []string{installation, incarnation} {
		if v, has := q.Tags[k]; has {
			m[k] = v
		}
	}
	return m
}

// Filter returns the filter for what an engine has created.
func Filter(name string, more ...types.Filter) []types.Filter {
	return append([]types.Filter{{Name: sdk.String("tag:" + Engine), Values: []string{name}}}, more...)
}

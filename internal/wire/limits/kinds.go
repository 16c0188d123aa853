package limits

import (
	"reflect"
	"strings"
	"sync"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/lib/size"
)

// kinds maps the fields of requests, reports and events to the kinds of their numbers: by type and name if the name
// alone is ambiguous, otherwise by name.
var kinds = map[string]*quantity.Kind{
	"step": quantity.Steps, "steps": quantity.Steps, "total": quantity.Steps, "patience": quantity.Steps,
	"message": quantity.Number, "seq": quantity.Number, "first": quantity.Number, "as_of": quantity.Number,
	"base": quantity.Number, "from": quantity.Number, "Move.epoch": quantity.Number, "seed": quantity.Number,

	"node": quantity.Nodes, "nodes": quantity.Nodes, "least_nodes": quantity.Nodes, "Need.machines": quantity.Nodes,
	"machines": quantity.Count,
	"count":    quantity.Count, "cpus": quantity.Count, "had_cpus": quantity.Count,
	"had_accelerators": quantity.Count, "offer_speed": quantity.Factor,
	"max_cpus": quantity.Count, "cores": quantity.Count,
	"accelerators": quantity.Count, "max_accelerators": quantity.Count, "gpus": quantity.Count, "index": quantity.Count,
	"jobs": quantity.Count, "running": quantity.Count, "max_running": quantity.Count, "at_once": quantity.Count,
	"needs": quantity.Count, "erased": quantity.Count, "stage": quantity.Count,
	"members": quantity.Count, "member": quantity.Count, "config": quantity.Count, "trials": quantity.Count,
	"seats": quantity.Count, "reserve": quantity.Count, "failures": quantity.Count, "max_retries": quantity.Count,
	"incarnation": quantity.Count, "wire": quantity.Count, "processes": quantity.Count, "cpu": quantity.Count,
	"runs": quantity.Count, "begun": quantity.Count, "skipped": quantity.Count, "missed": quantity.Count,
	"rows": quantity.Count, "cols": quantity.Count, "role": quantity.Count, "most": quantity.Count,
	"priority": quantity.Priority,

	"memory": quantity.Bytes, "memory_bytes": quantity.Bytes, "max_memory_bytes": quantity.Bytes,
	"machine_bytes": quantity.Bytes, "disk": quantity.Bytes, "disk_bytes": quantity.Bytes, "disk_read": quantity.Bytes,
	"disk_write": quantity.Bytes, "bytes": quantity.Bytes, "uploaded": quantity.Bytes, "log_end": quantity.Bytes,
	"fit": quantity.Bytes, "hit_bytes": quantity.Bytes, "fetched_bytes": quantity.Bytes,
	"files": quantity.Steps, "hits": quantity.Steps, "requests": quantity.Steps,

	"exit": quantity.Exit, "setup_status": quantity.Exit, "retry_codes": quantity.Exit,
	"promise": quantity.Fraction, "warn": quantity.Fraction, "gpu": quantity.Fraction,
	"speed": quantity.Factor, "faster": quantity.Factor, "parallel": quantity.Fraction,
	"units": quantity.Count, "least": quantity.Count, "throughput": quantity.Factor,
	"Shortage.left": quantity.Billed, "Shortage.kept": quantity.Billed, "Shortage.needs": quantity.Billed,
	"gpu_hours": quantity.GPUHours, "epoch": quantity.Epochs,
	"Param.min": quantity.Metric, "Param.max": quantity.Metric, "StudyParam.min": quantity.Metric,
	"StudyParam.max": quantity.Metric, "q": quantity.Metric, "mu": quantity.Metric, "sigma": quantity.Metric,
	"Fidelity.min": quantity.Metric, "Fidelity.max": quantity.Metric, "StudyFidelity.min": quantity.Metric,
	"Proxy.max": quantity.Metric, "StudyProxy.max": quantity.Metric, "Proxy.reserve": quantity.Fraction,
	"StudyProxy.reserve": quantity.Fraction, "promote": quantity.Count, "among": quantity.Count,
	"StudyFidelity.max": quantity.Metric, "gain_per_usd": quantity.Metric, "min_gain_per_usd": quantity.Metric,
	"point_value_usd": quantity.Metric, "Point.unit": quantity.Metric, "StudyPoint.unit": quantity.Metric,
	"Verdict.version": quantity.Count, "Warmed.version": quantity.Count,
	"examples": quantity.Count, "others": quantity.Count, "resamples": quantity.Count,
	"resample_seed": quantity.Number,
	"metrics":       quantity.Metric, "value": quantity.Metric, "target": quantity.Metric,
	"min_delta":          quantity.Metric,
	"Measurement.values": quantity.Measured, "covered": quantity.Measured, "power_limit_watts": quantity.Measured,
	"start": quantity.Seconds,
	"trial": quantity.Count, "worker": quantity.Count, "TellTrial.at": quantity.Steps,
	"TellTrial.seconds": quantity.Training,

	"offset_ns":       quantity.Offset,
	"BillLine.amount": quantity.Billed, "ReconciledLine.amount": quantity.Billed, "Spent.amount": quantity.Sum,
	"at_least": quantity.Count, "new_objects": quantity.Count, "gains": quantity.Count, "same": quantity.Count,
	"taken": quantity.Steps, "taken_of": quantity.Steps, "ahead": quantity.Count, "latest": quantity.Count,
	"Profile.seconds": quantity.Measured, "Profile.shares": quantity.Measured, "gpu_busy": quantity.Measured,
	"gpu_memory": quantity.Measured, "tensor_active": quantity.Measured, "ProfileOperator.share": quantity.Measured,
	"ProfileOperator.seconds": quantity.Measured,
	"PaysCheck.worth":         quantity.Sum,
	"SchedulePaysCheck.worth": quantity.Sum,
	"SetQueueShare.weight":    quantity.Factor, "FairTeam.weight": quantity.Factor,
}

// typeKinds maps types to their kinds.
var typeKinds = map[reflect.Type]*quantity.Kind{
	reflect.TypeFor[time.Time](): quantity.Time, reflect.TypeFor[time.Duration](): quantity.Span,
	reflect.TypeFor[money.Amount](): quantity.Dollars, reflect.TypeFor[money.Rate](): quantity.Price,
	reflect.TypeFor[size.Bytes](): quantity.Bytes,
}

// KindOf returns the kind of the numbers in a field of a struct, by its JSON name, including those in a list or a
// map; nil: no numbers, or no known kind.
func KindOf(of reflect.Type, name string, t reflect.Type) *quantity.Kind {
	t = element(t)
	known, typed := typeKinds[t]
	if !typed && !isNumber(t) {
		return nil
	}
	if k := kinds[of.Name()+"."+name]; k != nil {
		return k
	}
	if typed {
		return known
	}
	return kinds[name]
}

// element returns the type below pointers, lists and maps of t.
func element(t reflect.Type) reflect.Type {
	for k := t.Kind(); k == reflect.Pointer || k == reflect.Slice || k == reflect.Array || k == reflect.Map; k = t.Kind() {
		t = t.Elem()
	}
	return t
}

// isNumber reports whether t is a number type; byte is not.
func isNumber(t reflect.Type) bool {
	return t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64 && t.Kind() != reflect.Uint8
}

// nameOf returns the JSON name of a field; "-": none.
func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		name = strings.ToLower(f.Name)
	}
	return name
}

// part is a field of a struct that is or contains a number.
type part struct {
	at   int
	name string // "": embedded
	kind *quantity.Kind
}

var parts sync.Map // by type

// partsOf returns the fields of t with numbers.
func partsOf(t reflect.Type) []part {
	if known, ok := parts.Load(t); ok {
		return known.([]part) //nolint:forcetypeassert // nothing else is put there
	}
	var list []part
	for i := range t.NumField() {
		f := t.Field(i)
		switch name := nameOf(f); {
		case !f.IsExported() || name == "-":
		case f.Anonymous && f.Tag.Get("json") == "":
			list = append(list, part{at: i})
		default:
			if k := KindOf(t, name, f.Type); k != nil || holdsNumbers(f.Type, nil) {
				list = append(list, part{i, name, k})
			}
		}
	}
	parts.Store(t, list)
	return list
}

// holdsNumbers reports whether values of t may contain numbers.
func holdsNumbers(t reflect.Type, within []reflect.Type) bool {
	t = element(t)
	if typeKinds[t] != nil || isNumber(t) {
		return true
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	for _, outer := range within {
		if outer == t {
			return false
		}
	}
	for f := range t.Fields() {
		if f.IsExported() && holdsNumbers(f.Type, append(within, t)) {
			return true
		}
	}
	return false
}

// Unbounded lists the number fields within t without a kind. Tests check every request and every event with it.
func Unbounded(t reflect.Type) (list []string) { return unbounded(t, map[reflect.Type]bool{}) }

func unbounded(t reflect.Type, seen map[reflect.Type]bool) (list []string) {
	t = element(t)
	if t.Kind() != reflect.Struct || typeKinds[t] != nil || seen[t] {
		return nil
	}
	seen[t] = true
	for f := range t.Fields() {
		if !f.IsExported() || nameOf(f) == "-" {
			continue
		}
		if isNumber(element(f.Type)) && KindOf(t, nameOf(f), f.Type) == nil {
			list = append(list, t.String()+"."+nameOf(f))
		}
		list = append(list, unbounded(f.Type, seen)...)
	}
	return list
}

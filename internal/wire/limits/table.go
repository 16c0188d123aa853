package limits

import (
	"reflect"
	"strings"

	"scrimp/client"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/wire/api"
)

// Bound is the limit on the size of a field.
type Bound struct {
	Bytes int // of a string in JSON, and of each string in a list or a map
	Items int // of a list or a map
	Key   int // bytes of each key of a map

	kind *quantity.Kind // kind of a number, and of each in a list or a map; nil: no number, or clipped
}

// Standard is the bound of fields that the table does not name.
var Standard = Bound{Bytes: 1024, Items: 1000, Key: 128}

// longestNumber bounds the digits of a number.
const longestNumber = 64

// Sizes shared by several fields.
const (
	name     = 255      // of a job, an attempt, a machine, a checkpoint
	sentence = 1000     // text for people
	variable = 32 << 10 // of an environment variable, or an argument
	jobFile  = 1 << 20
)

// table holds the bounds of fields, by type and JSON name. "[]T" is a list of T that is a whole request.
var table = map[string]Bound{
	"[]Submission":       {Items: 1000},
	"Submission.key":     {Bytes: name},
	"Submission.spec":    {Bytes: jobFile},
	"PlanRequest.spec":   {Bytes: jobFile},
	"Submission.folder":  {Bytes: 4096},
	"Submission.work":    {Bytes: 64},
	"Submission.secrets": {Bytes: variable, Items: 200, Key: name},
	"Submission.shell":   {Bytes: variable, Items: 200, Key: name},
	"Submission.rerun":   {Bytes: name},

	"Proposing.why":        {Bytes: sentence},
	"Proposing.value_text": {Bytes: 200},
	"ProposalOutcome.text": {Bytes: sentence},

	"TakeRecommendation.name":     {Bytes: 64},
	"TakeRecommendation.team":     {Bytes: 63},
	"TakeRecommendation.currency": {Bytes: 16},

	"SnoozeAnomaly.until":   {Bytes: 64},
	"AnswerAnomaly.why":     {Bytes: sentence},
	"PlanAnomalies.since":   {Bytes: 64},
	"PlanAnomalies.until":   {Bytes: 64},
	"PlanAnomalies.team":    {Bytes: 63},
	"PlanAnomalies.project": {Bytes: 63},
	"PlanAnomalies.job":     {Bytes: name},
	"PlanAnomalies.why":     {Bytes: sentence},
	"AddAnomalyAlert.team":  {Bytes: 63},
	"AddAnomalyAlert.to":    {Bytes: 2048},
	"AddAnomalyAlert.kinds": {Bytes: 64, Items: 20},

	"Study.metric":       {Bytes: 1024},
	"Study.params":       {Items: 200},
	"Study.searcher":     {Bytes: 64},
	"StudyParam.name":    {Bytes: 100},
	"StudyParam.values":  {Bytes: 1024, Items: 100},
	"StudyFidelity.name": {Bytes: 16},
	"NewSearch.name":     {Bytes: 63},
	"SearchCall.name":    {Bytes: 63},
	"Study.past":         {Items: 2000},
	"StudyPast.params":   {Bytes: 1024, Items: 200, Key: 100},
	"StudyPast.points":   {Items: 1000},
	"Submission.from":    {Bytes: 2 * name},

	"Pipeline.stages":         {Items: 10_000},
	"PipelineStage.name":      {Bytes: 100},
	"PipelineStage.job":       {Bytes: jobFile},
	"PipelineStage.after":     {Bytes: 100, Items: 1000},
	"PipelineStage.deps":      {Bytes: 4096, Items: 1000},
	"PipelineStage.outs":      {Bytes: 4096, Items: 1000},
	"PipelineStage.metrics":   {Bytes: 4096, Items: 1000},
	"PipelineStage.params":    {Bytes: 4096, Items: 1000, Key: 4096},
	"PipelineGate.metric":     {Bytes: 4096},
	"PipelineDrift.file":      {Bytes: 4096},
	"PipelineDrift.columns":   {Bytes: 4096, Items: 200},
	"PipelineWarm.from":       {Bytes: 4096},
	"PipelineWarm.to":         {Bytes: 4096},
	"Schedule.cron":           {Bytes: 200},
	"Schedule.notify":         {Bytes: 4096},
	"Schedule.zone":           {Bytes: 100},
	"ScheduleData.path":       {Bytes: 4096},
	"PipelineDrift.reference": {Bytes: 4096},
	"PipelineDrift.above":     {Bytes: 100},
	"SchedulePays.metric":     {Bytes: 4096},
	"SchedulePays.point":      {Bytes: 100},
	"SchedulePays.goal":       {Bytes: 16},
	"PipelineGate.min":        {Bytes: 100},
	"PipelineGate.max":        {Bytes: 100},

	"Changes.deadline":   {Bytes: 64},
	"Changes.budget":     {Bytes: 64},
	"Changes.gpu_hours":  {Bytes: 64},
	"Changes.wall_clock": {Bytes: 64},
	"Changes.priority":   {Bytes: 64},
	"Resume.env":         {Bytes: variable, Items: 200},
	"Resume.secrets":     {Bytes: variable, Items: 200, Key: name},
	"Resume.shell":       {Bytes: variable, Items: 200, Key: name},
	"Review.reason":      {Bytes: sentence},
	"Exec.id":            {Bytes: 64},
	"Exec.command":       {Bytes: variable, Items: 1000},
	"ExecInput.input":    {Bytes: 96 << 10},
	"Terminal.kind":      {Bytes: 64},
	"GC.only":            {Bytes: 64, Items: 20},
	"GC.keep":            {Bytes: name, Items: 10_000},
	"Ownership.instance": {Bytes: name},

	"SetBudget.remove":   {Bytes: 400},
	"SetBudget.tag":      {Bytes: 63},
	"SetBudget.values":   {Bytes: 128, Items: 1000},
	"SetBudget.share":    {Bytes: 63},
	"SetQueueShare.team": {Bytes: 63},
	"Limit.scope":        {Bytes: 300},
	"Limit.window":       {Bytes: 16},
	"Limit.warn":         {Items: 20},
	"Limit.notify":       {Bytes: 2048},

	"SetUser.grants":   {Items: 1000},
	"SetUser.email":    {Bytes: 254},
	"Grant.team":       {Bytes: 63},
	"SetTeam.projects": {Bytes: 63, Items: 1000},
	"NewToken.user":    {Bytes: 63},
	"NewToken.note":    {Bytes: 200},

	"Identification.engine":    {Bytes: name},
	"Identification.document":  {Bytes: 8 << 10},
	"Identification.signature": {Bytes: 4 << 10},

	"Registration.instance": {Bytes: name},
	"Registration.key":      {Bytes: 128},
	"Registration.version":  {Bytes: 128},
	"Registration.address":  {Bytes: name},
	"Pull.running":          {Bytes: name, Items: 1000},
	"Pull.version":          {Bytes: 128},
	"Pull.build":            {Bytes: 128},

	"Report.attempt":         {Bytes: name},
	"Report.messages":        {Items: 256},
	"Report.trouble":         {Bytes: sentence},
	"Started.restored":       {Bytes: name},
	"Step.metrics":           {Items: 100, Key: 128},
	"Step.broken":            {Bytes: 128, Items: 100},
	"Step.values":            {Items: 1000},
	"Saved.manifest":         {Bytes: name},
	"Refused.manifest":       {Bytes: name},
	"Refused.why":            {Bytes: sentence},
	"Saved.lacks":            {Bytes: sentence},
	"Unsaved.why":            {Bytes: sentence},
	"Noticed.source":         {Bytes: 64},
	"Ended.reason":           {Bytes: 64},
	"Ended.outputs":          {Bytes: 1024},
	"Ended.error":            {Bytes: 4096},
	"ExecResult.output":      {Bytes: 3 << 19}, // 1 MiB in base64, with some room
	"ExecResult.error":       {Bytes: 4096},
	"ExecResult.session":     {Bytes: 64},
	"Measurements.buckets":   {Items: 60},
	"MeasuredMachine.gpus":   {Items: 16},
	"MeasuredMachine.driver": {Bytes: 64},
	"MeasuredGPU.name":       {Bytes: 128},
	"Measurement.values":     {Items: 256, Key: 64},
	"BlobSync.boot":          {Bytes: 128},
	"BlobSync.keys":          {Bytes: 1024, Items: 10_000},
}

// bodies holds the size limits of requests that differ from standardBody, in bytes.
var bodies = map[reflect.Type]int64{
	reflect.TypeFor[client.Submission]():   8 << 20,
	reflect.TypeFor[[]client.Submission](): 8 << 20,
	reflect.TypeFor[client.PlanRequest]():  2 << 20,
	reflect.TypeFor[client.Resume]():       1 << 20,
	reflect.TypeFor[client.Exec]():         128 << 10,
	reflect.TypeFor[client.ExecInput]():    128 << 10,
	reflect.TypeFor[client.GC]():           4 << 20,
	reflect.TypeFor[api.Identification]():  16 << 10,
	reflect.TypeFor[api.Report]():          2 << 20,
	reflect.TypeFor[api.Pull]():            256 << 10,
	reflect.TypeFor[client.ExecResult]():   2 << 20,
	reflect.TypeFor[api.BlobSync]():        4 << 20,
}

// standardBody is enough for a sentence and a handful of names.
const standardBody = 64 << 10

// Body returns the size limit of a request type, in bytes.
func Body(t reflect.Type) int64 {
	if most, ok := bodies[t]; ok {
		return most
	}
	return standardBody
}

// Of returns the bound of a field of a struct, by its JSON name.
func Of(t reflect.Type, field string) Bound { return boundOf(t.Name() + "." + field) }

// OfList returns the bound of a list that is a whole request.
func OfList(t reflect.Type) Bound { return boundOf("[]" + t.Elem().Name()) }

// boundOf returns an entry of the table, with standard values for missing fields.
func boundOf(key string) Bound {
	b := table[key]
	if b.Bytes == 0 {
		b.Bytes = Standard.Bytes
	}
	if b.Items == 0 {
		b.Items = Standard.Items
	}
	if b.Key == 0 {
		b.Key = Standard.Key
	}
	return b
}

// fieldsOf returns the fields of a struct by JSON name, including embedded ones.
func fieldsOf(t reflect.Type) map[string]field {
	list := map[string]field{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			for name, inner := range fieldsOf(f.Type) {
				list[name] = inner
			}
		case f.IsExported() && name != "-":
			if name == "" {
				name = f.Name
			}
			b := Of(t, name)
			if !clipped[t] {
				b.kind = KindOf(t, name, f.Type)
			}
			list[name] = field{f.Type, b}
		}
	}
	return list
}

// clipped lists the types of reports, whose numbers are clipped instead of refused.
var clipped = map[reflect.Type]bool{
	reflect.TypeFor[api.Report](): true, reflect.TypeFor[api.Message](): true, reflect.TypeFor[api.Started](): true,
	reflect.TypeFor[api.Step](): true, reflect.TypeFor[api.Value](): true, reflect.TypeFor[api.Saved](): true,
	reflect.TypeFor[api.Noticed](): true, reflect.TypeFor[api.Usage](): true, reflect.TypeFor[api.Ended](): true,
	reflect.TypeFor[api.Measurement](): true, reflect.TypeFor[api.MeasuredMachine](): true,
	reflect.TypeFor[api.MeasuredGPU](): true,
}

// field is a field that a request may have.
type field struct {
	of    reflect.Type
	bound Bound
}

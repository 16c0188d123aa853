package sizing

import (
	"strings"

	"scrimp/internal/cli/show"
	"scrimp/internal/estimate/shape"
	"scrimp/internal/lib/draw"
)

// PublishedModel is a model with a published shape.
type PublishedModel struct {
	Name       string   `json:"name"`
	Hub        []string `json:"hub"` // its names at huggingface.co
	Kind       string   `json:"kind"`
	Parameters float64  `json:"parameters"`
	Source     string   `json:"source"` // of the shape
}

// PublishedModels returns all published models in table order.
func PublishedModels() (list []PublishedModel) {
	for _, m := range shape.Models() {
		hub := shape.Hub(m.Name)
		if hub == nil {
			hub = []string{}
		}
		list = append(list, PublishedModel{m.Name, hub, string(m.Kind), m.Params, m.Source})
	}
	return list
}

// ModelTable formats the models for people.
func ModelTable(list []PublishedModel, p show.Place) string {
	var rows [][]string
	for _, m := range list {
		size := "-"
		if m.Parameters > 0 {
			size = show.Digits(m.Parameters)
		}
		hub := "-"
		if len(m.Hub) > 0 {
			hub = strings.Join(m.Hub, ", ")
		}
		rows = append(rows, []string{m.Name, size, m.Kind, hub})
	}
	var b strings.Builder
	b.WriteString(draw.Grid([]draw.Column{{Name: "NAME", Key: true}, {Name: "PARAMETERS", Right: true},
		{Name: "KIND", Leaves: 1}, {Name: "AT HUGGINGFACE.CO"}}, rows, p.Columns()))
	b.WriteString(draw.Wrap("", "Tuned forms (-Instruct, -chat, -it) and copies of others are found too. Any other "+
		"model: its config.json, an ONNX file or a line (docs/estimate.md).", p.Columns()))
	return b.String()
}

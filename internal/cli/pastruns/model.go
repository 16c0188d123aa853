package pastruns

import (
	"fmt"
	"os"
	"path/filepath"

	"scrimp/internal/estimate/modelfile"
	"scrimp/internal/estimate/shape"
)

// largestModel bounds a model file, in bytes; protobuf, and therefore ONNX, allows no more.
const largestModel = 2 << 30

// ModelOf finds a model by published name, in a file, or from a line.
func ModelOf(what string) (shape.Model, error) {
	if info, err := os.Stat(what); err == nil {
		if info.IsDir() {
			what = filepath.Join(what, "config.json")
			if info, err = os.Stat(what); err != nil {
				return shape.Model{}, fmt.Errorf("read the model: %w", err)
			}
		}
		if !info.Mode().IsRegular() || info.Size() > largestModel {
			return shape.Model{}, fmt.Errorf("read the model: %s is not a file of at most %d GiB", what, largestModel>>30)
		}
		content, err := os.ReadFile(what)
		if err != nil {
			return shape.Model{}, fmt.Errorf("read the model: %w", err)
		}
		return modelfile.Read(what, content)
	}
	if m, ok := shape.Named(what); ok {
		return m, nil
	}
	return modelfile.Spec(what)
}

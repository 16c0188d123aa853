package scaffold

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"scrimp/internal/spec"
)

func TestWhatIsWrittenIsAJobFile(t *testing.T) {
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  []string
	}{
		"empty":  {fstest.MapFS{}, []string{"nothing to run was found"}},
		"python": {fstest.MapFS{"train.py": {Data: []byte(`p.add_argument("--output_dir", default="./ckpts")`)}, "requirements.txt": {}}, []string{"command: python3 train.py", "pip install -r", "dir: ckpts"}},
		"main":   {fstest.MapFS{"zoo.py": {Data: []byte(`if __name__ == "__main__": pass`)}, "lib.py": {}}, []string{"python3 zoo.py"}},
		"go":     {fstest.MapFS{"go.mod": {}, "runs/x": {}}, []string{"go run .", "dir: runs"}},
		"evil":   {fstest.MapFS{"train.py": {Data: []byte(`save_dir = "../../etc"`)}}, []string{"dir: checkpoints"}},
	} {
		text := Look(c.files, "My Folder!")
		if _, _, err := spec.Parse("job.yaml", text, "x", time.Now()); err != nil {
			t.Errorf("%s: %v in\n%s", name, err, text)
		}
		for _, w := range c.want {
			if !strings.Contains(string(text), w) {
				t.Errorf("%s: no %q in\n%s", name, w, text)
			}
		}
	}
}

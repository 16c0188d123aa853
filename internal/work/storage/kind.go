package storage

import (
	"path"
	"slices"
	"strings"
)

// A Kind is what a file is used for.
type Kind string

// The kinds, in table order.
const (
	Checkpoints Kind = "checkpoints"
	Models      Kind = "models"
	Outputs     Kind = "outputs"
	Datasets    Kind = "datasets"
	Logs        Kind = "logs"
	TensorBoard Kind = "tensorboard"
	Profiles    Kind = "profiles"
	Images      Kind = "images" // container images
	Archives    Kind = "archives"
	Other       Kind = "other"
)

// Kinds lists the kinds in table order.
var Kinds = []Kind{Checkpoints, Models, Outputs, Datasets, Logs, TensorBoard, Profiles, Images, Archives, Other}

// suffixes maps the ends of file names to kinds. The first match counts, so longer suffixes stand first.
var suffixes = []struct {
	kind  Kind
	words string
}{
	{Profiles, ".pt.trace.json .pt.trace.json.gz .nsys-rep .qdrep .ncu-rep .xplane.pb"},
	{Images, ".sif .simg .sqsh .squashfs .qcow2 .oci.tar .docker.tar"},
	{Checkpoints, ".ckpt .distcp .ckpt.index"},
	{Logs, ".log .log.gz .log.1 .out .err"},
	{Models, ".safetensors .onnx .pt .pth .gguf .ggml .keras .tflite .pb .mlmodel .joblib .pkl .engine .caffemodel"},
	{Datasets, ".parquet .arrow .feather .tfrecord .tfrecords .csv .csv.gz .tsv .jsonl .jsonl.gz .jsonl.zst .npy .npz " +
		".h5 .hdf5 .mds .lmdb .mdb .avro .orc .recordio .jpg .jpeg .png .webp .tiff .dcm .wav .flac .mp3 .mp4"},
	{Archives, ".tar .tar.gz .tgz .tar.zst .tar.bz2 .tar.xz .zip .7z .zst .bz2 .xz .gz"},
}

// folders maps names of folders to kinds.
var folders = map[string]Kind{
	"checkpoints": Checkpoints, "checkpoint": Checkpoints, "ckpt": Checkpoints, "ckpts": Checkpoints,
	"models": Models, "weights": Models,
	"outputs": Outputs, "output": Outputs, "artifacts": Outputs, "artefacts": Outputs, "results": Outputs,
	"predictions": Outputs, "out": Outputs,
	"datasets": Datasets, "dataset": Datasets, "data": Datasets,
	"logs": Logs, "log": Logs, "wandb": Logs, "tensorboard": TensorBoard, "profiles": Profiles, "profiler": Profiles,
}

// suffixKind returns the kind of a file by the end of its name, or "".
func suffixKind(base string) Kind {
	for _, s := range suffixes {
		if slices.ContainsFunc(strings.Fields(s.words), func(w string) bool { return strings.HasSuffix(base, w) }) {
			return s.kind
		}
	}
	if strings.HasSuffix(base, ".bin") && (strings.Contains(base, "pytorch_model") ||
		strings.Contains(base, "adapter_model") || base == "model.bin") {
		return Models
	}
	return ""
}

// KindOf returns the kind of a file by its path. A file in a folder of checkpoints is part of a checkpoint whatever its
// name, except logs and events of TensorBoard. Otherwise the end of its name decides, then the innermost folder that
// has a telling name.
func KindOf(file string) Kind {
	lower := strings.ToLower(file)
	dir, base := path.Split(lower)
	if strings.Contains(base, "tfevents") {
		return TensorBoard
	}
	names := strings.FieldsFunc(dir, func(r rune) bool { return r == '/' })
	bySuffix := suffixKind(base)
	if bySuffix == "" || bySuffix == Models || bySuffix == Datasets || bySuffix == Archives {
		if saved(base) || slices.ContainsFunc(names, saved) {
			return Checkpoints
		}
	}
	if bySuffix != "" {
		return bySuffix
	}
	for _, name := range slices.Backward(names) {
		if k, ok := folders[name]; ok {
			return k
		}
	}
	return Other
}

// saved reports whether a name in lower case is that of a checkpoint, or of a folder of checkpoints.
func saved(name string) bool {
	return folders[name] == Checkpoints || numbered(name) || strings.Contains(name, "checkpoint") ||
		strings.Contains(name, "ckpt") || name == "optimizer.pt" || name == "optimizer.bin"
}

// numbered reports whether a name in lower case is that of one checkpoint of several, such as checkpoint-500.
func numbered(name string) bool { return begins(name, strongNames) || begins(name, weakNames) }

// strongNames begin names of checkpoints; weakNames also begin names of their parts and of runs.
var (
	strongNames = []string{"checkpoint", "ckpt"}
	weakNames   = []string{"global_step", "step", "epoch", "iter_"}
)

func begins(name string, with []string) bool {
	for _, begin := range with {
		if rest, ok := strings.CutPrefix(name, begin); ok {
			rest = strings.TrimLeft(rest, "-_=")
			return rest != "" && rest[0] >= '0' && rest[0] <= '9'
		}
	}
	return false
}

// unitOf returns the checkpoint that a file is part of, and what the checkpoints of its run have in common. The
// checkpoint is the outermost folder with a name such as checkpoint-500, else the innermost such as global_step500,
// else the file itself, whose run is its folder and the end of its name.
func unitOf(file string) (unit, run string) {
	weak := ""
	for at := 0; ; {
		i := strings.IndexByte(file[at:], '/')
		if i < 0 {
			break
		}
		name := strings.ToLower(file[at : at+i])
		if begins(name, strongNames) {
			return file[:at+i], path.Dir(file[:at+i])
		}
		if begins(name, weakNames) {
			weak = file[:at+i]
		}
		at += i + 1
	}
	if weak != "" {
		return weak, path.Dir(weak)
	}
	return file, path.Dir(file) + "/*" + path.Ext(file)
}

// chosen reports whether the name of a checkpoint says that somebody chose it, such as best.ckpt or last.pt.
func chosen(unit string) bool {
	base := strings.ToLower(path.Base(unit))
	return slices.ContainsFunc([]string{"best", "last", "latest", "final", "release"}, func(word string) bool {
		return strings.Contains(base, word)
	})
}

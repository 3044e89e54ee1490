package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/hubcache"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/internal/suggest"
	"github.com/jenga-nlp/jenga/plugin"
)

// File is a path in an experiment file. Name is "" where there is none. Where several files are named, Name is their
// pattern or list, and Paths lists them.
type File struct {
	Name  string
	Place plugin.Place

	several *fileList       // nil: Name is the path
	section *plugin.Section // from which it is read, or as which it is written; nil: none
}

// Read implements plugin.Option: what the file is called, to be found.
func (File) Read(s *plugin.Section, _ *plugin.Mistakes) any {
	if s == nil {
		return File{}
	}
	return File{Place: s.Place, section: s}
}

// Section implements plugin.Option.
func (f File) Section() *plugin.Section { return plugin.SectionOf(f.section) }

type fileList struct {
	paths   []string // as they are read
	entries []File   // of a list; nil: of a pattern
	folder  string   // where pattern was found; "": pattern is absolute or relative to the working directory
	pattern string   // as it is written
}

// given reports whether the experiment file has the key, even if its value is a mistake.
func (f File) given() bool { return f.Place != (plugin.Place{}) }

// Paths returns the paths of the file, or those of a list or a pattern in the order in which they are read.
func (f File) Paths() []string {
	if f.several != nil {
		return f.several.paths
	}
	return []string{f.Name}
}

// FilesNamed returns the files that paths and patterns name, in their order: relative to the working directory.
func FilesNamed(names []string) (File, error) {
	list := &fileList{}
	for _, name := range names {
		paths := []string{name}
		if isPattern(name) && !runfolder.Exists(name) {
			var err error
			if paths, err = glob("", name); err != nil {
				return File{}, noPattern(name, err)
			}
			if len(paths) == 0 {
				return File{}, fmt.Errorf("%q matches no file; %s", name, contents(filepath.Dir(name)))
			}
			slices.Sort(paths)
		}
		for _, path := range paths {
			if slices.Contains(list.paths, path) {
				return File{}, fmt.Errorf("duplicate file %s", path)
			}
			list.paths = append(list.paths, path)
		}
	}
	return File{Name: strings.Join(names, ", "), several: list}, nil
}

func noPattern(pattern string, err error) error {
	return fmt.Errorf("%q is no pattern: %w; * and ? match any text and any character, [a-z] one of several",
		pattern, err)
}

func (d *decoding) dataFiles(s *plugin.Section, task, what string) File {
	if s == nil || s.Kind != plugin.List {
		return d.dataFile(s, task, what)
	}
	all, list := File{Place: s.Place}, &fileList{}
	var names []string
	if len(s.Items) == 0 {
		d.mistakes.Add(s.Place, "%s: %s: the list is empty; want a path at least", task, what)
		return all
	}
	before := d.mistakes.Len()
	for i, item := range s.Items {
		if item.Kind >= plugin.List || item.Kind == plugin.Null {
			d.mistakes.Add(item.Place, "%s: %s: item %d of the list: want a path or a pattern, have %s%s", task, what,
				i+1, item, listAdvice(item))
			continue
		}
		file := d.dataFile(item, task, what)
		if file.Name == "" {
			continue
		}
		for _, path := range file.Paths() {
			if slices.Contains(list.paths, path) {
				d.mistakes.Add(item.Place, "%s: %s: duplicate file %s", task, what, path)
			}
			list.paths = append(list.paths, path)
		}
		list.entries = append(list.entries, file)
		names = append(names, file.Name)
	}
	if d.mistakes.Len() > before {
		return all
	}
	all.Name, all.several = strings.Join(names, ", "), list
	return all
}

func listAdvice(item *plugin.Section) string {
	if item.Kind != plugin.Mapping {
		return ""
	}
	return "; options such as header are those of all files of a list, as {path: [FILE, FILE], header: false}"
}

func isPattern(path string) bool { return strings.ContainsAny(path, "*?[") }

// matching returns the files that a pattern matches, sorted: relative to the experiment file, else below $JENGA_DATA.
// Its Name is "" if there are none.
func (d *decoding) matching(s *plugin.Section, pattern string) (File, error) {
	folders := []string{""}
	if pattern != filepath.Clean(s.Text) {
		folders[0] = filepath.Dir(s.Place.File)
	}
	if dir := os.Getenv("JENGA_DATA"); dir != "" && !filepath.IsAbs(s.Text) {
		folders = append(folders, dir)
	}
	for _, folder := range folders {
		paths, err := glob(folder, s.Text)
		if err != nil {
			return File{}, noPattern(s.Text, err)
		}
		if len(paths) > 0 {
			slices.Sort(paths)
			list := &fileList{paths: paths, folder: folder, pattern: s.Text}
			return File{Name: filepath.Join(folder, s.Text), Place: s.Place, several: list}, nil
		}
	}
	return File{}, nil
}

// glob returns the paths in a folder that a pattern matches. As in a shell, a wildcard at the beginning of a name
// matches none that begins with a dot, such as .old.jsonl, or ._a.jsonl, which macOS writes beside a.jsonl on other
// disks.
func glob(folder, pattern string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(quoted(folder), pattern))
	names := strings.Split(filepath.ToSlash(filepath.Clean(pattern)), "/")
	return slices.DeleteFunc(paths, func(path string) bool {
		in := strings.Split(filepath.ToSlash(path), "/")
		for i := 1; i <= min(len(in), len(names)); i++ { // from the end
			wild := strings.IndexAny(names[len(names)-i], "*?[") == 0
			if wild && strings.HasPrefix(in[len(in)-i], ".") {
				return true
			}
		}
		return false
	}), err
}

// quoted returns the pattern that a path alone matches. On Windows a pattern cannot quote, and only [ is in names.
func quoted(path string) string {
	if filepath.Separator == '\\' {
		return path
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

func contents(folder string) string {
	const most = 10
	entries, err := os.ReadDir(folder)
	switch {
	case err != nil && isPattern(folder):
		return "its folder is a pattern too"
	case err != nil:
		return "there is no folder " + folder
	case len(entries) == 0:
		return folder + " is empty"
	}
	var names []string
	for _, e := range entries[:min(most, len(entries))] {
		names = append(names, e.Name())
	}
	text := folder + " has " + strings.Join(names, ", ")
	if more := len(entries) - most; more > 0 {
		text += " and " + plugin.Count(more, "more file")
	}
	return text
}

// paths returns the section of a file: its path or pattern, or a list of these.
func (f *writing) paths(file File) *plugin.Section {
	switch list := file.several; {
	case list == nil || list.entries == nil && filepath.IsAbs(list.pattern):
		return f.path(file.Name)
	case list.entries == nil:
		folder := f.path(filepath.Join(list.folder, ".")).Text
		return plugin.SectionOf(filepath.ToSlash(filepath.Join(quoted(folder), list.pattern)))
	}
	list := &plugin.Section{Kind: plugin.List}
	for _, entry := range file.several.entries {
		list.Items = append(list.Items, f.paths(entry))
	}
	return list
}

// relative returns the path in a section: relative to the file that it is in, or to the working directory if it is from
// --set.
func (d *decoding) relative(s *plugin.Section, what string) string {
	if s.Kind >= plugin.List || s.Text == "" || strings.ContainsRune(s.Text, 0) {
		d.mistakes.Add(s.Place, "%s: want a path, have %s", what, s)
		return ""
	}
	if filepath.IsAbs(s.Text) || s.Place.Line == 0 {
		return filepath.Clean(s.Text)
	}
	return filepath.Join(filepath.Dir(s.Place.File), s.Text) // of a kept task, the file of the base run
}

// dataFile finds the data file that a section of a task names, or those of a pattern: relative to the experiment file,
// else below $JENGA_DATA.
func (d *decoding) dataFile(s *plugin.Section, task, what string) File {
	if s == nil || s.Kind == plugin.Null {
		return File{}
	}
	path := d.relative(s, task+": "+what)
	if path == "" {
		return File{Place: s.Place}
	}
	if runfolder.Exists(path) {
		return File{Name: path, Place: s.Place}
	}
	if dir := os.Getenv("JENGA_DATA"); dir != "" && !filepath.IsAbs(s.Text) {
		if found := filepath.Join(dir, s.Text); runfolder.Exists(found) {
			return File{Name: found, Place: s.Place}
		}
	}
	near := nearest(path, s.Text, "JENGA_DATA", suggest.AnyFile)
	missing := s.Text + ": no such file" + alsoSearched("JENGA_DATA", s.Text) + near
	if isPattern(s.Text) && what != "vectors" {
		file, err := d.matching(s, path)
		if err != nil {
			d.mistakes.Add(s.Place, "%s: %w", task, err)
			return File{Place: s.Place}
		}
		if file.Name != "" {
			return file
		}
		near, missing = "", fmt.Sprintf("%q matches no file%s; %s", s.Text, alsoSearched("JENGA_DATA", s.Text),
			contents(filepath.Dir(path)))
	}
	if !d.files {
		return File{Name: path, Place: s.Place}
	}
	before := d.mistakes.Len()
	moved := d.moved(s, what)
	if near != "" { // which ends in a question mark
		moved = strings.TrimPrefix(moved, ";")
	}
	d.mistakes.Add(s.Place, "%s: %s%s", task, missing, moved)
	d.absent += d.mistakes.Len() - before
	return File{Place: s.Place}
}

// nearest returns the end of an error about a name that is in no place: what has almost that name where path is, or
// below the directory of an environment variable, and fulfils a condition; "" if there is none.
func nearest(path, name, variable string, condition func(path string) bool) string {
	near := suggest.File(path, name, condition)
	if dir := os.Getenv(variable); near == "" && dir != "" && !filepath.IsAbs(name) {
		return suggest.File(filepath.Join(dir, name), name, condition)
	}
	return near
}

// alsoSearched returns the end of an error: the directory of an environment variable where a relative name was looked
// up too.
func alsoSearched(variable, name string) string {
	switch dir := os.Getenv(variable); {
	case filepath.IsAbs(name):
		return ""
	case dir == "":
		return ", nor below $" + variable + ", which is not set"
	default:
		return ", nor below $" + variable + ", " + dir
	}
}

// baseModel finds a folder or file of weights: relative to the experiment file, else below $JENGA_MODELS or in the
// Hugging Face cache. What it is called in errors is key; ofRun finds the encoder of a run at path.
func (d *decoding) baseModel(s *plugin.Section, key string, ofRun func(path string, at plugin.Place) File) File {
	path := d.relative(s, "model: "+key)
	if path == "" {
		return File{Place: s.Place}
	}
	if runfolder.Exists(path) {
		if d.files && (runfolder.IsRun(path) || runfolder.IsCheckpoint(path)) {
			return ofRun(path, s.Place)
		}
		path = modelFolder(path)
		if d.files { // of a run that is trained they may be gone, and who opens it checks them
			if err := cmp.Or(checkModel(path), runfolder.CheckEncoder(d.ctx, path)); err != nil {
				d.mistakes.Add(s.Place, "model: %s: %w", key, err)
			}
		}
		return File{Name: path, Place: s.Place}
	}
	if found := findLocal(s.Text); found != "" {
		found = modelFolder(found)
		if err := checkAdapter(found); d.files && err != nil {
			d.mistakes.Add(s.Place, "model: %s: %w", key, err)
		}
		return File{Name: found, Place: s.Place}
	}
	want := "folder"
	if key == fromKey {
		want = "run, folder"
	}
	switch of := d.ofBaseRun(); {
	case d.files && of != "" && key == baseModelKey:
		d.mistakes.Add(s.Place, "model: base_model: no run %q: %s is of a run, whose weights and options are "+
			"read again from its folder, also where training is resumed; put the folder back, or name its new place "+
			"as model.base_model", s.Text, of)
	case d.files:
		d.mistakes.Add(s.Place, "model: %s: no %s or .onnx file %q%s, nor in the Hugging Face cache%s", key, want,
			s.Text, alsoSearched("JENGA_MODELS", s.Text), ModelHint(path, s.Text))
	}
	return File{Name: path, Place: s.Place}
}

// modelFolder returns the folder of the encoder in that of a model: of one of sentence-transformers, which may have it
// in a folder of its own that modules.json names, by default 0_Transformer, and of a model of the Hugging Face cache
// its only snapshot. Else it is path itself.
func modelFolder(path string) string {
	if path == "" || runfolder.Exists(filepath.Join(path, "config.json")) {
		return path
	}
	var modules []struct{ Path, Type string }
	list := filepath.Join(path, "modules.json")
	if files.ReadJSON(list, files.MaxConfig, &modules) == nil && len(modules) > 0 {
		folder := filepath.FromSlash(modules[0].Path)
		switch {
		case modules[0].Path == "":
		case !filepath.IsLocal(folder) || !runfolder.Exists(filepath.Join(path, folder)):
			return path // which is a mistake, whatever else is there
		case runfolder.Exists(filepath.Join(path, folder, "config.json")):
			return filepath.Join(path, folder)
		}
	}
	for _, pattern := range []string{"0_*", filepath.Join("snapshots", "*"), "*"} {
		if pattern == "*" && filepath.Base(path) != "snapshots" {
			continue
		}
		inside, _ := filepath.Glob(filepath.Join(quoted(path), pattern, "config.json"))
		if len(inside) == 1 {
			return filepath.Dir(inside[0])
		}
	}
	return path
}

func checkModel(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case runfolder.IsRun(path):
		return fmt.Errorf("%s is a run; its encoder is %s", path,
			filepath.Join(path, runfolder.BestDir, runfolder.EncoderDir))
	case !info.IsDir() && !strings.EqualFold(filepath.Ext(path), ".onnx"):
		return fmt.Errorf("%s is a file; want a folder, or an .onnx file", path)
	case info.IsDir():
		return checkAdapter(path)
	}
	return nil
}

// notEncoders are the modules of sentence-transformers that may be a model's first and are no transformer of texts.
var notEncoders = []string{"WordEmbeddings", "StaticEmbedding", "BoW", "CLIPModel", "Router", "Asym"}

// checkModule returns an error for the folder of a model of sentence-transformers, or of its first module, that is no
// transformer.
func checkModule(path string) error {
	for _, folder := range []string{path, filepath.Dir(path)} {
		var modules []struct{ Path, Type string }
		list := filepath.Join(folder, "modules.json")
		err := files.ReadJSON(list, files.MaxConfig, &modules)
		switch mine := folder == path || strings.HasPrefix(filepath.Base(path), "0_"); {
		case path == "" || errors.Is(err, fs.ErrNotExist) || !mine && (err != nil || len(modules) == 0):
			continue
		case err != nil:
			return fmt.Errorf("%w; it lists the modules of a model of sentence-transformers: want a whole one, which "+
				"the model's source has", err)
		case len(modules) == 0:
			return fmt.Errorf("%s: it lists no module; want the list of a model of sentence-transformers, which the "+
				"model's source has", list)
		}
		kind := modules[0].Type[strings.LastIndexByte(modules[0].Type, '.')+1:]
		if slices.Contains(notEncoders, kind) && (folder == path || filepath.Base(path) == modules[0].Path) {
			return fmt.Errorf("%s: the first module is %s (type: %s), which is no transformer of texts; want a model "+
				"whose first module is Transformer", list, kind, modules[0].Type)
		}
		first := filepath.FromSlash(modules[0].Path)
		switch {
		case folder != path || first == "" || runfolder.Exists(filepath.Join(path, "config.json")):
		case !filepath.IsLocal(first):
			return fmt.Errorf("%s: the first module is in %q, outside of the model; name that folder, if it has the "+
				"encoder", list, modules[0].Path)
		case !runfolder.Exists(filepath.Join(path, first)):
			return fmt.Errorf("%s: the first module is in the folder %q, which is missing; download the whole model "+
				"again", list, modules[0].Path)
		}
	}
	return nil
}

// checkAdapter returns an error for a folder that has an adapter of PEFT instead of a model, or beside one: with the
// latter AutoModel adds the changes to the base model.
func checkAdapter(path string) error {
	const name = "adapter_config.json"
	has := func(name string) bool { return runfolder.Exists(filepath.Join(path, name)) }
	if path == "" || !has(name) {
		return checkModule(path)
	}
	beside := ""
	if has("config.json") {
		beside = "; without " + name + " the weights beside it are read as they are"
	}
	var adapter struct {
		Base string `json:"base_model_name_or_path"`
	}
	if err := files.ReadJSON(filepath.Join(path, name), files.MaxConfig, &adapter); err != nil {
		return err
	}
	if adapter.Base == "" {
		return fmt.Errorf("%s has %s, an adapter of PEFT, whose weights are changes of a model that it does not name; "+
			"want that model, or one with the changes in it, which Python writes: PeftModel.from_pretrained("+
			"AutoModel.from_pretrained(MODEL), %[1]q).merge_and_unload().save_pretrained(FOLDER), and "+
			"AutoTokenizer.from_pretrained(MODEL).save_pretrained(FOLDER)%[3]s", path, name, beside)
	}
	return fmt.Errorf("%s has %s, an adapter of PEFT, whose weights are changes of the model %q; want that model with "+
		"the changes in it, which Python writes: AutoPeftModel.from_pretrained(%q).merge_and_unload()"+
		".save_pretrained(FOLDER), and AutoTokenizer.from_pretrained(%[3]q).save_pretrained(FOLDER)%[5]s", path, name,
		adapter.Base, path, beside)
}

// encoderType returns the type of the encoder in a model's folder: model_type of its config.json if an encoder of this
// name is registered, else the default.
func encoderType(folder string) string {
	if of := modelType(folder); slices.Contains(encoders.Registry().Names(), of) {
		return of
	}
	return encoders.Registry().Default()
}

func modelType(folder string) string {
	var config struct {
		Type string `json:"model_type"`
	}
	if err := files.ReadJSON(filepath.Join(folder, "config.json"), files.MaxConfig, &config); err != nil {
		return ""
	}
	return config.Type
}

// FindModel returns the folder or file of a model's weights. name is a path, or a name below $JENGA_MODELS or in the
// Hugging Face cache, there with @REVISION for another one than main. The path is "" if there is no such model.
func FindModel(name string) (path string, err error) {
	if runfolder.Exists(name) {
		name = modelFolder(name)
		return name, checkModel(name)
	}
	path = modelFolder(findLocal(name))
	return path, checkAdapter(path)
}

// EncoderIn returns the encoder of a run whose weights are in a folder: the one that the experiment file names, else
// the one of the weights' config.json. The base model itself may no longer exist.
func (e *Experiment) EncoderIn(folder string) (plugin.Choice[encoders.Env, encoders.Encoder], error) {
	if !e.Model.EncoderOfBase {
		return e.Model.Encoder, nil
	}
	return EncoderFor(folder)
}

// EncoderFor returns the encoder for the weights in a folder: the one of their config.json.
func EncoderFor(folder string) (plugin.Choice[encoders.Env, encoders.Encoder], error) {
	return encoders.Registry().FromString(encoderType(folder), "")
}

func findLocal(name string) string {
	if filepath.IsAbs(name) {
		return ""
	}
	if dir := os.Getenv("JENGA_MODELS"); dir != "" {
		if found := filepath.Join(dir, name); runfolder.Exists(found) {
			return found
		}
	}
	return hubcache.Find(name)
}

// ModelHint returns the end of an error about a model that is in no place: one on this machine that has almost its
// name, where path is, below $JENGA_MODELS or in the Hugging Face cache, and PullHint.
func ModelHint(path, name string) string {
	near := nearest(path, name, "JENGA_MODELS", func(path string) bool {
		return runfolder.IsRun(path) || runfolder.IsCheckpoint(path) || filepath.Ext(path) == ".onnx" ||
			runfolder.Exists(filepath.Join(modelFolder(path), "config.json"))
	})
	if cached, ok := suggest.Nearest(name, hubcache.Names()); ok && near == "" {
		near = fmt.Sprintf("; did you mean %q?", cached)
	}
	if near != "" {
		return near + strings.TrimPrefix(PullHint(name), ";")
	}
	return PullHint(name)
}

// PullHint returns the end of an error about a model that is in no place: the command that downloads it, if name may be
// that of a hub model.
func PullHint(name string) string {
	if m, err := hubcache.Parse(name); err == nil {
		return fmt.Sprintf("; if it is a model of the hub, %q downloads it", "jenga pull "+m.String())
	}
	return ""
}

// LocalModels lists the names that base_model may have for models on this machine, the smallest first, and of those
// with as many weights the ones of wider types: folders below $JENGA_MODELS, and models in the Hugging Face cache. It
// lists those whose weights and tokenizer jenga reads, as far as the header of the weights, the files' names and
// config.json tell: its model_type is one of types.
func LocalModels(types []string) []string {
	type size struct{ weights, bytes int64 }
	sizes := map[string]size{}
	add := func(name string) {
		if folder := findLocal(name); folder != "" {
			if weights, bytes := modelSize(folder, types); weights > 0 {
				sizes[name] = size{weights, bytes}
			}
		}
	}
	if dir := os.Getenv("JENGA_MODELS"); dir != "" {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			add(e.Name())
		}
	}
	for _, name := range hubcache.Names() {
		add(name)
	}

	return slices.SortedFunc(maps.Keys(sizes), func(a, b string) int {
		x, y := sizes[a], sizes[b]
		return cmp.Or(cmp.Compare(x.weights, y.weights), cmp.Compare(y.bytes, x.bytes), cmp.Compare(a, b))
	})
}

// modelSize returns the number of a folder's weights and their bytes; 0 if it has no weights that can be read, no
// tokenizer, or a model_type that is none of types.
func modelSize(folder string, types []string) (weights, bytes int64) {
	if !slices.Contains(types, modelType(folder)) || !corpus.HasTokenizer(folder) {
		return 0, 0
	}
	file, err := safetensors.Open(filepath.Join(folder, "model.safetensors"))
	if err != nil {
		return 0, 0
	}
	defer file.Close()
	for _, tensor := range file.Tensors() {
		width, _ := safetensors.Size(tensor.DType, nil)
		if safetensors.IsFloat(tensor.DType) || tensor.DType == "I8" { // rather than position ids
			weights += tensor.Bytes() / width
			bytes += tensor.Bytes()
		}
	}
	return weights, bytes
}

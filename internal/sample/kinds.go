package sample

// KindsTasks are the tasks of an experiment with a task of each kind, whose data are KindsFiles.
const KindsTasks = `  - {name: mood, type: classification, data: {train: mood.jsonl}, heads: [{name: plain, pool: mean},
      {name: lens, type: focus, lstm_layers: 1, lstm_hidden: 4, attention_heads: 2, lens_per_head: true}]}
  - {name: many, type: multi_label, data: {same_as: mood}}
  - {name: value, type: regression, data: {same_as: mood}}
  - {name: hidden, type: mlm, data: {train: mood.jsonl}}
  - {name: names, type: ner, data: {train: names.jsonl}, heads: [{name: plain}, {name: chain, type: crf}]}
  - {name: alike, type: similarity, data: {train: pairs.jsonl}}
  - {name: who, type: question_answering, data: {train: who.jsonl}}
`

// KindsFiles returns the data of KindsTasks by file name.
func KindsFiles() map[string]string {
	return map[string]string{
		"mood.jsonl": `{"text": "so good", "label": "good", "labels": ["a"], "value": 1.5}` + "\n" +
			`{"text": "so bad day", "label": "bad", "labels": ["a", "b"], "value": 3}` + "\n",
		"names.jsonl": `{"words": ["so", "good"], "tags": ["O", "B-name"]}` + "\n",
		"pairs.jsonl": `{"text": "so good", "pair": "so bad", "value": 0.5}` + "\n" +
			`{"text": "a day", "pair": "so good", "value": 1}` + "\n",
		"who.jsonl": `{"question": "so good", "context": "a bad day", "answers": ["day"]}` + "\n",
	}
}

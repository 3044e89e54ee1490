package corpus

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/ianaindex"
)

// The bytes of the names' texts are those of Python 3.11's codecs.
func TestEncodings(t *testing.T) {
	for _, test := range []struct{ name, data, want string }{
		{"utf-8", "caf\xc3\xa9", "café"},
		{"UTF8", "caf\xc3\xa9", "café"},
		{"utf_8_sig", "caf\xc3\xa9", "café"},
		{"utf-8-sig", "caf\xc3\xa9", "café"},
		{"latin-1", "caf\xe9", "café"},
		{"iso8859_1", "caf\xe9", "café"},
		{"windows_1252", "\x93", "“"},
		{"mac_roman", "caf\x8e", "café"},
		{"cp932", "\x83\x5c\x83\x74\x83\x67", "ソフト"},
		{"euc_kr", "\xbe\xc8", "안"},
		{"latin1", "caf\xe9 \x93", "café \u0093"},
		{"cp1252", "caf\xe9 \x93a\x94 \x80", "café “a” €"},
		{"windows-1252", "\x93", "“"},
		{"ISO-8859-15", "\xa4", "€"},
		{"cp437", "caf\x82", "café"},
		{"koi8-r", "\xd0\xd2\xc9\xd7\xc5\xd4", "привет"},
		{"macintosh", "caf\x8e", "café"},
		{"shift_jis", "\x83\x5c\x83\x74\x83\x67", "ソフト"}, // a backslash within the first character
		{"gbk", "\xc4\xe3\xba\xc3", "你好"},
		{"euc-kr", "\xbe\xc8", "안"},
	} {
		for file, data := range map[string]string{"x.csv": "text\n" + test.data + "\n",
			"x.json": "[{\"text\": \"" + test.data + "\"}]", "x.jsonl": "{\"text\": \"" + test.data + "\"}\r\n"} {
			records, err := Read(strings.NewReader(data), file, Format{Encoding: test.name})
			if err != nil || len(records) != 1 || records[0].Fields["text"] != test.want {
				t.Errorf("%s in %s: %v, %v, want %s", test.name, file, records, err, test.want)
			}
		}
	}
}

func TestUTF16(t *testing.T) {
	for _, test := range []struct{ name, data string }{
		{"utf-16", "\xff\xfet\x00\n\x00\xe9\x00\n\x00"},
		{"utf16", "\xff\xfet\x00\n\x00\xe9\x00\n\x00"},
		{"UTF-16", "\xfe\xff\x00t\x00\n\x00\xe9\x00\n"},
		{"utf-16le", "t\x00\n\x00\xe9\x00\n\x00"},
		{"utf-16le", "\xff\xfet\x00\n\x00\xe9\x00\n\x00"}, // with a byte-order mark
		{"utf-16be", "\x00t\x00\n\x00\xe9\x00\n"},
		{"UTF-16BE", "\xfe\xff\x00t\x00\n\x00\xe9\x00\n"},
	} {
		records, err := Read(strings.NewReader(test.data), "x.csv", Format{Encoding: test.name})
		if err != nil || len(records) != 1 || records[0].Fields["t"] != "é" {
			t.Errorf("%s: %v, %v", test.name, records, err)
		}
	}
}

// U+FFFD of the file, and a surrogate pair.
func TestUTF16Characters(t *testing.T) {
	for _, name := range []string{"utf-16-le", "utf_16"} {
		const data = "t\x00\n\x00\xfd\xff\x3d\xd8\x00\xde\n\x00"
		records, err := Read(strings.NewReader(data), "x.csv", Format{Encoding: name})
		if err != nil || len(records) != 1 || records[0].Fields["t"] != "\ufffd😀" {
			t.Errorf("%s: %v, %v", name, records, err)
		}
	}
}

// Each of x/text's code pages has a name at IANA that is accepted.
func TestEveryCodePageHasAName(t *testing.T) {
	named := 0
	for _, e := range charmap.All {
		name, err := ianaindex.IANA.Name(e)
		if err != nil {
			continue // of no registry
		}
		named++
		if got, err := encodingOf(strings.ToUpper(name)); err != nil || got != e {
			t.Errorf("%s is %v, %v, want %v", name, got, err, e)
		}
	}
	if named < 35 { // charmap.All has 38 in x/text 0.43
		t.Errorf("%d code pages have a name, want at least 35", named)
	}
}

// The remedy of an error reads the file, or says to correct it.
func TestInvalidBytes(t *testing.T) {
	for _, test := range []struct{ name, data, encoding, want string }{
		{"a Windows code page", "text\na \x97 b\nna\xefve\nx\xe9\n", "",
			"x.csv:2: byte 0x97 at character 3 is not UTF-8; encoding: cp1252 reads it as in \"—\", encoding: NAME " +
				"other code pages, as cp850 or koi8-r\nx.csv: 2 more lines with such bytes"},
		{"not Windows-1252", "text\nna\x8bve \x81x\n\x81\n", "",
			"x.csv:2: byte 0x8b at character 3 is not UTF-8; encoding: cp1252 reads it as in \"na‹ve\", encoding: " +
				"NAME other code pages, as cp850 or koi8-r\nx.csv: 1 more line with such bytes"},
		{"a byte that Windows-1252 lacks", "text\n\x81x\n", "",
			"x.csv:2: byte 0x81 at character 1 is not UTF-8; encoding: NAME reads another code page, as cp850, " +
				"koi8-r or shift_jis"},
		{"Cyrillic", "text\n\xcf\xf0\xe8\xe2\xe5\xf2\n", "",
			"x.csv:2: byte 0xcf at character 1 is not UTF-8; encoding: cp1251 reads it as in \"Привет\", encoding: " +
				"NAME other code pages, as cp1253 or koi8-r"},
		{"Cyrillic, a short word first", "text,label\n\xce\xed \xe1\xfb\xeb \xe2 \xef\xe0\xf0\xea\xe5,positive\n", "",
			"x.csv:2: byte 0xce at character 1 is not UTF-8; encoding: cp1251 reads it as in \"Он\", encoding: NAME " +
				"other code pages, as cp1253 or koi8-r"},
		{"Cyrillic, a short line first", "text,label\n\xce\xed,x\n\xe1\xfb\xeb \xe2 \xef\xe0\xf0\xea\xe5,x\n", "",
			"x.csv:2: byte 0xce at character 1 is not UTF-8; encoding: cp1251 reads it as in \"Он\", encoding: NAME " +
				"other code pages, as cp1253 or koi8-r\nx.csv: 1 more line with such bytes"},
		{"a word of accents in French", "text\n\xc7\xc0 l'\xe9t\xe9\n\xe9t\xe9 \xe0 no\xebl\n", "",
			"x.csv:2: byte 0xc7 at character 1 is not UTF-8; encoding: cp1252 reads it as in \"ÇÀ\", encoding: NAME " +
				"other code pages, as cp850 or koi8-r\nx.csv: 1 more line with such bytes"},
		{"a file that is UTF-8", "text\ncafé\nna\xefve\n", "",
			"x.csv:3: byte 0xef at character 3 is not UTF-8; 1 line of the file is not UTF-8, and 1 line with other " +
				"characters than ASCII is: no encoding reads both; write the former in UTF-8"},
		{"lines that alternate", "text\nna\xefve\ncaf\xc3\xa9\nna\xefve\ncaf\xc3\xa9\n\xe9t\xe9\nso\n", "",
			"x.csv:2: byte 0xef at character 3 is not UTF-8; 3 lines of the file are not UTF-8, and 2 lines with " +
				"other characters than ASCII are: no encoding reads both; write the former in UTF-8"},
		{"a line that is UTF-8", "text\ncafé na\xefve\n", "",
			"x.csv:2: byte 0xef at character 8 is not UTF-8; other characters of the file are: correct this one"},
		{"a byte-order mark", "\ufefftext\nna\xefve\n", "",
			"x.csv:2: byte 0xef at character 3 is not UTF-8; the file begins with UTF-8's byte-order mark: correct " +
				"the character"},
		{"a byte that the encoding lacks", "text\na\x81\nb\x81\n", "cp1252",
			"x.csv:2: character 2 is a byte that encoding cp1252 does not have; another encoding, or correct it\n" +
				"x.csv: 1 more line with such bytes"},
		{"an unpaired surrogate", "t\x00\n\x00a\x00\x00\xd8b\x00\n\x00", "utf-16le",
			"x.csv:2: character 2 is a byte that encoding utf-16le does not have; another encoding, or correct it"},
		{"a file that ends within a character", "t\x00\n\x00a\x00b", "utf-16le",
			"x.csv:2: character 2 is a byte that encoding utf-16le does not have; another encoding, or correct it"},
		{"UTF-16", "\xff\xfet\x00", "cp1252", "x.csv:1: the file is UTF-16; encoding: utf-16 reads it"},
		{"UTF-8", "\ufefftext\na\n", "cp1252",
			"x.csv:1: the file begins with UTF-8's byte-order mark; leave out encoding: cp1252"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(test.data), "x.csv", Format{Encoding: test.encoding})
			if err == nil || err.Error() != test.want {
				t.Errorf("error %v, want\n%s", err, test.want)
			}
		})
	}
}

func FuzzEncodings(f *testing.F) {
	for _, name := range []string{"cp1252", "shift_jis", "gb18030", "utf-16", "iso-2022-jp", "utf-7"} {
		f.Add("text\na\x81\xff\n", name)
	}
	f.Fuzz(func(t *testing.T, data, name string) {
		format := Format{Encoding: name}
		if format.Check("x.csv") != nil {
			return
		}
		records, err := Read(strings.NewReader(data), "x.csv", format)
		checkRecords(t, "x.csv", 1<<30, records, err)
	})
}

// Files of lines in two encodings: no error names an encoding, which would spoil the lines in the other one.
func TestNoEncodingIsNamedForAMixtureOfTwo(t *testing.T) {
	for name, record := range map[string]string{
		"x.jsonl": `{"text": "WORD"}` + "\n", "x.csv": "WORD,a\n", "x.conll": "WORD O\n\n", "x.tsv": "WORD\ta\n",
	} {
		var data strings.Builder
		if strings.HasSuffix(name, "sv") {
			data.WriteString(strings.Replace(record, "WORD", "text", 1))
		}
		for range 3 {
			data.WriteString(strings.Replace(record, "WORD", "na\xefve", 1))
			data.WriteString(strings.Replace(record, "WORD", "naïve", 1))
			data.WriteString(strings.Replace(record, "WORD", "so", 1))
		}
		_, _, err := readBoth(t, name, data.String(), Format{})
		checkMixture(t, name, err, 3, 3)
	}
	array := "[{\"text\": \"na\xefve\"},\n{\"text\": \"naïve\"},\n{\"text\": \"\xe9t\xe9\",\n\"label\": \"ä\"}]"
	_, err := Read(strings.NewReader(array), "x.json", Format{})
	checkMixture(t, "an array", err, 2, 2)
	squad := "{\"data\": [{\"title\": \"na\xefve\", \"paragraphs\": [\n{\"context\": \"naïve\", \"qas\": []}]}]}"
	_, err = Read(strings.NewReader(squad), "x.json", Format{})
	checkMixture(t, "SQuAD", err, 1, 1)
	folder := writeFiles(t, "seq.in", "a\nb\n", "seq.out", "na\xefve\nnaïve\n", "label", "x\ny\n")
	_, err = Open(t.Context(), folder, Format{})
	checkMixture(t, "a folder", err, 1, 1)
}

func checkMixture(t *testing.T, name string, err error, other, utf8 int) {
	t.Helper()
	want := fmt.Sprintf("%s of the file %s not UTF-8, and %s with other characters than ASCII %s: no encoding reads "+
		"both", counted(other, "line"), isOrAre(other), counted(utf8, "line"), isOrAre(utf8))
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "encoding: ") {
		t.Errorf("%s: error %v, want %s", name, err, want)
	}
}

func TestIsGarbled(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "plain": false, "café": false, "cafÃ©": true, "Itâ€™s late": true, "Ã": false, "5 Â£": true,
		"naïve façade": false, "слово": false, "日本": false, "æ—¥æœ¬": true,
		"cafÃ© и": false, "Â": false, "£5 – “so”": false,
		"ÐŸÑ€Ð¸Ð²ÐµÑ‚": true, "Ð¼Ð¸Ñ\u0080, Ñ\u0081Ð¾": true, "Ïðèâåò": false,
	} {
		if got := IsGarbled(text); got != want {
			t.Errorf("IsGarbled(%q) = %v", text, got)
		}
	}
}

func TestIsOtherScript(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "plain": false, "café à la crème": false, "Привет": false, "Ïðèâåò": true,
		"Ïðèâåò, ìèð 5": true, "ÊáëçìÝñá": true, "ÊáëçìÝñá êüóìå": true, "ÐÒÉ×ÅÔ ÍÉÒ": true,
		"ñ à é ô": false, "Ïðèâåò my dear old friend": false,
		"ÀÉ": false, "ÐŸÑ€Ð¸Ð²ÐµÑ‚": false, "Îí áûë": false, "Îí áûë â ïàðêå": true, "÷àñ íî÷è": true,
		"电话138××××××××": false, "×××××××": false, "×÷×÷×÷×÷": false, "房号××室××××××": false, "ÖÖÖÖÖÖÖ!": false,
		"ÄÖÜäöüß": false, "ÖÖÖÖ ÄÄÄÄ ÜÜÜÜ éééé àààà": false, "æ—¥æœ¬èªžã®æ–‡ç« ": false,
	} {
		if got := IsOtherScript(text); got != want {
			t.Errorf("IsOtherScript(%q) = %v", text, got)
		}
	}
}

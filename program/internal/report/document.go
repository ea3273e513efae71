package report

import (
	_ "embed"
	"html/template"
)

//go:embed page/document.html
var documentHTML string

//go:embed page/document.css
var documentCSS string

// Documents parses templates of pages without scripts that look like the page of a report. Such a page begins with the
// template "head" of its title, and its body is of the class site.
func Documents(text string) *template.Template {
	style := func() template.CSS { return template.CSS(pageCSS + documentCSS) }
	head := template.Must(template.New("").Funcs(template.FuncMap{"style": style}).Parse(documentHTML))
	return template.Must(head.Parse(text))
}

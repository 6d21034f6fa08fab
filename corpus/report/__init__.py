"""The report of a corpus: what came in, what each rule took, what is left.

counts      what the steps counted, added up
examples    texts that were kept, taken, or found alike
parts       what a report is made of: figures, charts, tables, examples
funnel      documents and Han characters from stage to stage
sections    the report's content, in its order
page        that content as HTML and as Markdown
"""

"""Cleaning rules one by one: cases 9, 13, 14, 15, 17, and the Markdown and boilerplate of real sources."""

import pytest

from corpus.config import PRESETS
from corpus.rules import order

CONFIG = PRESETS["web"]
BY_NAME = {rule.__name__: rule for rule in order.ALL_RULES}
URL = "https://example.org/a_(b)"
ARTICLE = (
    "图书馆在河的北岸，从学校走过去要一刻钟。每到周末，孩子们就带着借书证来看书，有的坐在窗边，有的靠着书架。管理员说，"
    "这里的书虽然旧，但没有一本是白放的：每一本都有人借走过，又好好地还了回来。到了傍晚，灯一盏一盏地亮起来，河面上便有了光。"
)
# rule, input, right output (None: rejected or dropped)
CASES = [
    ("line_ends", "甲\r\n乙\r丙", "甲\n乙\n丙"),
    ("normal_form_c", "\uf900", "\u8c48"),  # case 14
    ("normal_form_c", "e\u0301", "é"),
    ("wide_letters", "Ｇ２０，３％！", "G20，3％！"),  # case 13
    ("wide_letters", "35㎡①：；？（）……Ⅱ℃½㈱", "35㎡①：；？（）……Ⅱ℃½㈱"),  # case 13
    ("invisible_characters", "\ue000甲\u200b乙", "甲乙"),  # case 15
    ("invisible_characters", "甲\u2028乙\n丙", "甲 乙\n丙"),  # case 15
    ("invisible_characters", "甲\u3000\u00a0乙\x85丙\ufffd\ufeff", "甲 乙 丙"),  # case 15
    ("invisible_characters", "𠮷\U0003134a", "𠮷\U0003134a"),  # Han that an older Python does not know
    ("html_remains", "<ruby>内核<rt>kernel</rt></ruby>是<b>甲</b>&amp;乙<br/>", "内核是甲&乙\n"),
    ("html_remains", "<tr><td>支持的协议</td><td class='x'>无</td></tr>", "\n\n支持的协议\n\n无\n\n"),
    ("html_remains", "若 a<b 且 c>d，List<String>", "若 a<b 且 c>d，List<String>"),
    ("code_fences", "甲：\n```bash\nls -l\n```\n乙", "甲：\n\n乙"),
    ("code_fences", "~~~\n这里其实是一段中文说明文字。\n~~~", "\n这里其实是一段中文说明文字。\n"),
    ("broken_decimals", "约3.\n5元", "约3.5元"),
    ("broken_decimals", "见表1.\n2、结论", "见表1.\n2、结论"),
    ("front_matter", "[#]: author: (Someone)", None),
    ("front_matter", "[1]: https://example.org", None),
    ("front_matter", "[注]：以上价格含税。", "[注]：以上价格含税。"),
    ("rule_line", "======", None),
    ("rule_line", "* * *", None),
    ("table_row", "| 名称 | 价格 |", None),
    ("table_row", "│組員│一四│", None),
    ("table_row", "绝对值 |x| 不小于零", "绝对值 |x| 不小于零"),
    ("code_line", "    for (i = 0; i < n; i++) {", None),
    ("code_line", "$ sudo apt-get update", None),
    ("code_line", "    第二条 本办法自发布之日起施行。", "    第二条 本办法自发布之日起施行。"),
    ("markdown", f"![图]({URL})", ""),
    ("markdown", f"见[说明]({URL})和[手册][1]。", "见说明和手册。"),
    ("markdown", "### 安装 **新版** 的 `vim` ###", "安装 新版 的 vim"),
    ("markdown", "###5) 编辑配置", "5) 编辑配置"),
    ("markdown", "> - 一个*重要*的选项", "一个重要的选项"),
    ("markdown", "2*3*4 等于 24", "2*3*4 等于 24"),
    ("markdown", "#话题# 今天真热", "#话题# 今天真热"),
    ("markdown", "数组 a[0] 与 b[1] 相等", "数组 a[0] 与 b[1] 相等"),
    ("boilerplate", "版权所有：某某网络公司", None),
    ("boilerplate", "Copyright © 2020 示例公司", None),
    ("boilerplate", "未经许可，不得转载本站内容", None),
    ("boilerplate", "责任编辑：王小明", None),
    ("boilerplate", "附件三 保育申請書（格式）.PDF", None),
    ("boilerplate", "请先下载申请表，填好后另存为 表格.pdf", "请先下载申请表，填好后另存为 表格.pdf"),
    ("boilerplate", "下一篇：如何选购手机", None),
    ("boilerplate", "长按二维码关注我们", None),
    ("boilerplate", "他把文章分享到了班级群里。", "他把文章分享到了班级群里。"),
    ("boilerplate", "未經許可，不得使用公益信託之名稱。", "未經許可，不得使用公益信託之名稱。"),
    ("boilerplate", "记者：您一生中最好的作品会出现在什么年龄?", "记者：您一生中最好的作品会出现在什么年龄?"),
    ("boilerplate", "连扫描二维码都是个头痛的问题。", "连扫描二维码都是个头痛的问题。"),
    ("boilerplate", "扫描左侧二维码，关注我们", None),
    ("boilerplate", "4. 重新扫描总线来添加设备", "4. 重新扫描总线来添加设备"),
    ("boilerplate", "软件的副本要带上版权声明。", "软件的副本要带上版权声明。"),
    ("boilerplate", "也可以直接点击这里下载，然后解压：", "也可以直接点击这里下载，然后解压："),
    ("boilerplate", "著作权法保护作者的权利。", "著作权法保护作者的权利。"),
    ("boilerplate", "小明注册了公司。", "小明注册了公司。"),
    ("addresses", "详见 https://example.org/?a=1。", "详见。"),
    ("addresses", "见https://example.org，谢谢", "见，谢谢"),
    ("addresses", "详见 https://example.org 这一页", "详见这一页"),
    ("addresses", f"（{URL}，第三节）", "（第三节）"),
    ("addresses", "收藏以下链接：https://example.org/a?b=1，随时查看。", "收藏以下链接，随时查看。"),
    ("bracket_edges", "又名（，小名阿毛，）", "又名（小名阿毛）"),
    ("bracket_edges", "节瓜（学名：），又称毛瓜", "节瓜（），又称毛瓜"),  # and empty_brackets takes the rest
    ("bracket_edges", "猫（学名：''）、（英文：，又名阿猫）", "猫（）、（又名阿猫）"),
    ("bracket_edges", "乙（简称乙；英文：“”）丙（日语：，英译：B）", "乙（简称乙）丙（英译：B）"),
    (
        "bracket_edges",
        "丁（英语：D，缩写：E）第一个硬盘（C:）说：“好”，",
        "丁（英语：D，缩写：E）第一个硬盘（C:）说：“好”，",
    ),
    ("bracket_edges", "“好，”他说，（其实不好）", "“好，”他说，（其实不好）"),
    ("boilerplate", "责编|王小明", None),
    ("boilerplate", "【编辑：王小明】", None),
    ("boilerplate", "（责任编辑：王小明 AB12）", None),
    ("boilerplate", "来源：某某晚报", None),
    ("boilerplate", "来源丨某某发布、某某晚报", None),
    (
        "boilerplate",
        "来源：这种说法最早见于宋人笔记，已不可考。",
        "来源：这种说法最早见于宋人笔记，已不可考。",
    ),
    ("boilerplate", "图片来源：某某图片网", None),
    ("boilerplate", "（视觉中国）", None),
    ("boilerplate", "资料图：冬日的码头，工人正在卸货。", "资料图：冬日的码头，工人正在卸货。"),
    ("boilerplate", "扫描下方二维码，领取资料", None),
    ("boilerplate", "点击菜单栏【服务】查询更多", None),
    ("boilerplate", "喜欢的话，点个【在看】！", None),
    ("boilerplate", "3、回复【公积金】查看办理流程", None),
    ("boilerplate", "回复“在吗”的人很多。", "回复“在吗”的人很多。"),
    (
        "boilerplate",
        "從事遠洋漁業之漁船，未經主管機關許可不得為海上轉載。",
        "從事遠洋漁業之漁船，未經主管機關許可不得為海上轉載。",
    ),
    (
        "boilerplate",
        "第三十二条 未经著作权人许可，不得复制其作品。",
        "第三十二条 未经著作权人许可，不得复制其作品。",
    ),
    ("boilerplate", "公司已取得ICP证和EDI证，可以开展业务。", "公司已取得ICP证和EDI证，可以开展业务。"),
    ("boilerplate", "该公司于2015年取得网络文化经营许可证。", "该公司于2015年取得网络文化经营许可证。"),
    ("boilerplate", "我七点在看。", "我七点在看。"),
    ("boilerplate", "未经授权，不得转载。", None),
    ("boilerplate", "未经许可不得复制或建立镜像", None),
    ("boilerplate", "京ICP备12345678号-1", None),
    ("boilerplate", "ICP备案号：京ICP备00000000号", None),
    ("boilerplate", "网络文化经营许可证 京网文[2014]0000-000号", None),
    ("boilerplate", "广播电视节目制作经营许可证（京）字第0000号", None),
    ("boilerplate", "发送邮件至 a@example.com 申请加入", None),
    ("boilerplate", "他在看书，一点在看不见的地方。", "他在看书，一点在看不见的地方。"),
    ("site_notes", "（原标题：小镇来了新邮差，他骑着一辆旧自行车！）", None),
    ("site_notes", "本文原标题：《小镇来了新邮差》", None),
    ("site_notes", "(综合整理自某某日报、某某网等)", None),
    ("site_notes", "（本文来自某某新闻，更多内容请下载“某某新闻”APP）", None),
    ("site_notes", "（自一九九零年起施行）", "（自一九九零年起施行）"),
    ("site_notes", "声明：本文内容仅供参考，不构成任何投资建议，投资者据此操作，风险自担。", None),
    ("site_notes", "特别声明：以上文章为某某号作者上传并发布，仅代表作者观点，不代表本平台立场。", None),
    ("site_notes", "这份声明代表了全体村民的意见。", "这份声明代表了全体村民的意见。"),
    ("site_notes", "发布时间：2023-11-06 发布人：王小明 点击数：1207", None),
    ("site_notes", "发布时间：2023-11-06 10:20", None),
    ("site_notes", "2013年11月25日", "2013年11月25日"),
    ("site_notes", "时间：下午三点。地点：学校门口。", "时间：下午三点。地点：学校门口。"),
    ("no_han", "01", "01"),
    ("no_han", "②", "②"),
    ("no_han", "2013", None),
    ("addresses", "点这里(https://example.org/a).", "点这里()."),
    ("addresses", "https://example.org", ""),
    ("link_list", "首页 | 新闻 | 体育 | 财经 | 娱乐", None),
    ("link_list", "行政＞內政部＞地政目", None),
    ("link_list", "首页 » 新闻 » 国内", None),
    ("link_list", "打开“文件＞新建＞项目”即可", "打开“文件＞新建＞项目”即可"),
    ("link_list", "甲＞乙", "甲＞乙"),
    ("link_list", "爱丽丝·莫尔·斯密斯", "爱丽丝·莫尔·斯密斯"),
    ("link_list", "他说：甲|乙|丙|丁|戊都行。", "他说：甲|乙|丙|丁|戊都行。"),
    ("no_han", "Hello world", None),
    ("no_han", "好", "好"),
    ("little_han", "What can I learn right now in just 10 minutes 吗", None),
    (
        "little_han",
        "《The Debian Administrator’s Handbook》可以免费下载",
        "《The Debian Administrator’s Handbook》可以免费下载",
    ),
    (
        "little_han",
        "（二）英國：Some National Formulary（S.N.F.）",
        "（二）英國：Some National Formulary（S.N.F.）",
    ),
    ("long_runs", "太差了！！！！！！哈哈哈哈哈", "太差了！！！哈哈哈"),
    ("long_runs", "1000000 aaaaa ……——", "1000000 aaaaa ……——"),
    ("little_han", "-" * 40 + "他回来了", "-" * 40 + "他回来了"),
    ("empty_brackets", "甲（，；）乙（ ）丙（1）", "甲乙丙（1）"),  # case 9
    ("empty_brackets", "甲（乙（））", "甲（乙）"),  # case 9
    ("empty_brackets", ":-)", ":-)"),  # case 9
    ("empty_brackets", "范廷颂枢机（，），圣名保禄", "范廷颂枢机，圣名保禄"),  # case 9, of a CMRC context
    ("too_short", "原文", None),
    ("too_short", "今天下雨。", "今天下雨。"),  # case 17: no rule counts words or wants a full stop
    ("not_chinese", "これはただのにほんごです漢字", None),
    ("not_chinese", "An English text with two 汉字 in it and nothing else of note", None),
    ("not_chinese", "广泛性发展障碍（Pervasive Disorder）", "广泛性发展障碍（Pervasive Disorder）"),
    ("repeated_lines", "\n".join(["夏威夷果仁，我的最爱！", "每次都吃，经典之作！"] * 4), None),
    ("repeated_lines", "\n".join(["甲", "乙"]), "甲\n乙"),
    ("repeated_characters", "很好" * 40, None),
    ("repeated_characters", "哈哈哈哈哈哈", "哈哈哈哈哈哈"),
    ("variant_markup", "切-{zh-hans:尔西;zh-hk:路士}-的球队", "切尔西的球队"),
    ("variant_markup", "車-{zh-hans:尔西;zh-hant:路士}-隊與體育", "車路士隊與體育"),
    ("variant_markup", "长沙-{里}-，-{abc", "长沙里，-{abc"),
    ("contact_advert", "更多精彩内容，请加微信：abc12345", None),
    ("contact_advert", "有意加QQ 12345678", None),
    ("contact_advert", "驱动难找，谁找到了共享下QQ6930454", "驱动难找，谁找到了共享下QQ6930454"),
    ("contact_advert", "传承国学文化微信号：abcd55", None),
    ("leading_marks", "，是冷湖行政区的一个镇。", "是冷湖行政区的一个镇。"),
    ("leading_marks", "……“好”，他说", "……“好”，他说"),
    ("contact_advert", "想报名的加V13800001111", None),
    ("contact_advert", "更稳健的方式是增加 VirtualBox 的磁盘", "更稳健的方式是增加 VirtualBox 的磁盘"),
    ("contact_advert", "再添加 Vivaldi 的仓库：", "再添加 Vivaldi 的仓库："),
    ("contact_advert", "他每天都用微信和QQ聊天。", "他每天都用微信和QQ聊天。"),
    ("contact_advert", "联系电话：0951-2061889", "联系电话：0951-2061889"),
    ("mojibake", "锟斤拷锟斤拷新闻", None),
    ("mojibake", "中文".encode().decode("latin-1"), None),
    ("mojibake", "Café Müller 的舞台", "Café Müller 的舞台"),
    ("keyword_list", "常规赛,季后赛,半决赛,最佳新秀", None),
    ("keyword_list", "奔跑吧,天籁之战,极限挑战,韩雪,张杰", None),  # a title holds 吧
    (
        "keyword_list",
        "散热不错,外观漂亮,推荐购买,物流快,性价比高.",
        "散热不错,外观漂亮,推荐购买,物流快,性价比高.",
    ),
    ("keyword_list", "无信号,自动关机,死机,修不好,很失望,别买", "无信号,自动关机,死机,修不好,很失望,别买"),
    ("keyword_list", "裤子不错,物流很快,不掉色,很喜欢", "裤子不错,物流很快,不掉色,很喜欢"),
    ("keyword_list", "东风,西风,南风", "东风,西风,南风"),
    ("identity_numbers", "身份证号11010519491231002X。", "身份证号<id>。"),  # the standard's own example
    ("identity_numbers", "身份证号110105194912310021。", "身份证号110105194912310021。"),  # wrong check digit
    ("identity_numbers", "编号440524198001010013", "编号<id>"),
    ("identity_numbers", "编号440524198013010013", "编号440524198013010013"),  # no thirteenth month
    ("identity_numbers", "流水11010519491231002X77", "流水11010519491231002X77"),
    ("bank_cards", "卡号 6222 0210 0011 2230 是我的", "卡号 <card> 是我的"),
    ("bank_cards", "卡号6217001330000123459", "卡号<card>"),
    ("bank_cards", "卡号6217001330000123458", "卡号6217001330000123458"),  # fails Luhn's check
    ("bank_cards", "订单1111111111111117", "订单1111111111111117"),  # no network begins with 1
    ("mobile_numbers", "请打13800138000，谢谢", "请打<phone>，谢谢"),
    ("mobile_numbers", "+86 138-0013-8000或138 0013 8000", "<phone>或<phone>"),
    ("mobile_numbers", "长数213800138000与1380013800012", "长数213800138000与1380013800012"),
    ("mobile_numbers", "总机010-82338000，热线400-886-5590", "总机010-82338000，热线400-886-5590"),
    ("mobile_numbers", "比值0.13800138000", "比值0.13800138000"),
    ("email_addresses", "来信寄 li.si@example.com.cn。", "来信寄 <email>。"),
    ("email_addresses", "@所有人，一斤@十元", "@所有人，一斤@十元"),
    ("repeated_grams", "物流太慢了，我等了好多天，客服也不理人。" * 6, None),
    (
        "repeated_grams",
        "".join(f"{name}企业微博" for name in "甲乙丙丁戊己庚辛壬癸子丑寅卯辰巳午未申酉"),
        None,
    ),
    ("repeated_grams", ARTICLE + "b" * 60, ARTICLE + "b" * 60),  # one run is one word
    ("few_function_words", "".join(chr(0x4E00 + 37 * n) for n in range(120, 260)), None),
    ("few_function_words", ARTICLE, ARTICLE),
    ("blocked_terms", "真人百家乐，六合彩特码，时时彩投注，注册送彩金" * 3, None),
    (
        "blocked_terms",
        "警方捣毁一个网络赌场，参与者玩百家乐。" + ARTICLE,
        "警方捣毁一个网络赌场，参与者玩百家乐。" + ARTICLE,
    ),
    (
        "blocked_terms",
        "口交、肛交均可传播此病，一夜情与无保护的性行为风险更高。" + ARTICLE,
        "口交、肛交均可传播此病，一夜情与无保护的性行为风险更高。" + ARTICLE,
    ),
]


@pytest.mark.parametrize(("name", "text", "expected"), CASES)
def test_rule(name: str, text: str, expected: str | None) -> None:
    assert BY_NAME[name](text, CONFIG) == expected


def test_every_rule_has_an_example() -> None:
    assert {name for name, _, _ in CASES} | {"wrapped_lines"} == set(BY_NAME)

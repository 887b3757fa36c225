//! The papers that experiments, claims and comments call S0 to S4.

/// A paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// As files and texts call it.
    pub name: &'static str,
    /// Who wrote it, as far as our copy says so.
    pub authors: Option<&'static str>,
    /// Its title, or what it is where our copy has none.
    pub title: &'static str,
    /// What it is about, and where it comes from.
    pub about: &'static str,
}

/// All of them. They are in Portuguese.
pub const REFERENCES: [Reference; 5] = [
    Reference {
        name: "S0",
        authors: None,
        title: "Token algorithms for exclusive access to files under version control",
        about: "A paper that applies the token algorithms of Naimi and Trehel and of Bertier, Arantes and \
                Sens to files in a version control system such as Git. Our copy begins with its abstract, \
                'Version control systems, such as Git, have revolutionized the way teams are programmed', \
                and names neither title nor authors; the title here is ours.",
    },
    Reference {
        name: "S1",
        authors: Some("Paulo H. Floriano, Luciana Arantes, Alfredo Goldman"),
        title: "Condições de conectividade de algoritmos de exclusão mútua em redes dinâmicas",
        about: "Conditions of connectivity for mutual exclusion algorithms in dynamic networks. IME, \
                Universidade de São Paulo, and LIP6, Université de Paris 6, CNRS, INRIA. Our copy names \
                neither venue nor year; what it leaves out is in a report of the same title, \
                RT-MAC-2012-01, IME-USP, 2012.",
    },
    Reference {
        name: "S2",
        authors: None,
        title: "Capítulo 8: Exclusão Mútua",
        about: "Chapter 8, mutual exclusion, of a textbook on distributed systems: a coordinator, Lamport, \
                Ricart and Agrawala, Maekawa, Suzuki and Kasami, Singhal, Raymond, and the table that \
                compares them. Our copy names neither book nor author.",
    },
    Reference {
        name: "S3",
        authors: Some(
            "Clara Ribeiro Barreto, Kaio da Silva dos Santos, João Pedro Covello Valente",
        ),
        title: "Implementação de Exclusão Distribuída",
        about: "An implementation of the centralised algorithm over sockets. Centro Federal de Educação \
                Tecnológica Celso Suckow da Fonseca, CEFET/RJ, 2025 as the logs in it say.",
    },
    Reference {
        name: "S4",
        authors: Some("Luiz A. Rodrigues, Elias P. Duarte Jr., Luciana Arantes"),
        title: "Exclusão Mútua Distribuída e Robusta para k Recursos Compartilhados",
        about: "Robust distributed mutual exclusion for k shared resources. Universidade Estadual do Oeste \
                do Paraná, Universidade Federal do Paraná, and Université Pierre et Marie Curie. Our copy names \
                neither venue nor year; the newest work that it cites is of 2012.",
    },
];

impl Reference {
    /// The paper that `name` stands for.
    pub fn find(name: &str) -> Option<&'static Self> {
        REFERENCES.iter().find(|reference| reference.name == name)
    }

    /// Authors and title.
    pub fn full(&self) -> String {
        match self.authors {
            Some(authors) => format!("{authors}: {}", self.title),
            None => self.title.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_paper_of_an_experiment_is_one_of_them() {
        for experiment in crate::all().unwrap() {
            if let Some(paper) = &experiment.paper {
                assert!(Reference::find(paper).is_some(), "{}: {paper}", experiment.name);
            }
        }
        assert_eq!(Reference::find("S9"), None);
    }

    #[test]
    fn authors_stand_before_the_title_where_they_are_known() {
        let full = |name: &str| Reference::find(name).unwrap().full();
        assert!(
            full("S3").starts_with("Clara Ribeiro Barreto, ")
                && full("S3").ends_with("Distribuída")
        );
        assert_eq!(full("S2"), "Capítulo 8: Exclusão Mútua");
    }
}
